/** @jsxImportSource preact */

/**
 * The product's mark. Two chevrons meet a dot: they stand for data that comes into the mirror and data that goes out.
 */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 20 20" aria-hidden="true">
      <path d="M2 4l5 6-5 6M18 4l-5 6 5 6" fill="none" stroke="currentColor" stroke-width="2.5" />
      <circle cx="10" cy="10" r="2" fill="currentColor" />
    </svg>
  );
}
