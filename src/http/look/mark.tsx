/** @jsxImportSource preact */

/** The product's mark: two chevrons that meet a dot, for what comes into the mirror and what goes out. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 20 20" aria-hidden="true">
      <path d="M2 4l5 6-5 6M18 4l-5 6 5 6" fill="none" stroke="currentColor" stroke-width="2.5" />
      <circle cx="10" cy="10" r="2" fill="currentColor" />
    </svg>
  );
}
