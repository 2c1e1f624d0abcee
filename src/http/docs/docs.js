// This script adds the choice of a theme, copying, the choice of a language, and "/" for the search. The pages are
// complete without the script.

const THEMES = ["", "light", "dark"];
const THEME_NAMES = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" };

/** Returns a stored choice of the reader, or an empty text. A browser can forbid access to the storage. */
function remembered(name) {
  try {
    return localStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // The choice cannot be stored, so the next page forgets it.
  }
}

function showTheme(theme) {
  if (theme === "") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

function button(text, onClick) {
  const element = document.createElement("button");
  element.type = "button";
  element.className = "outline small";
  element.textContent = text;
  element.addEventListener("click", () => onClick(element));
  return element;
}

function offerThemes(header) {
  let theme = remembered("theme");
  header.append(
    button(THEME_NAMES[theme] ?? THEME_NAMES[""], (element) => {
      theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
      showTheme(theme);
      remember("theme", theme);
      element.textContent = THEME_NAMES[theme];
    }),
  );
}

/**
 * Copies code. Browsers have the clipboard only on https and localhost. Elsewhere, the code is selected, so that the
 * reader can copy it by hand.
 */
async function copy(code, element) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    element.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(code);
    element.textContent = "Selected";
  }
}

function offerCopying() {
  for (const code of document.querySelectorAll("pre > code")) {
    const frame = document.createElement("div");
    frame.className = "copyable";
    const block = code.parentElement;
    block.replaceWith(frame);
    frame.append(
      block,
      button("Copy", (element) => copy(code, element)),
    );
  }
}

/** Returns groups of adjacent figures. A group has the same program in several languages. */
function languageGroups() {
  const groups = [];
  for (const figure of document.querySelectorAll("main figure")) {
    const before = groups.at(-1);
    if (before !== undefined && before.at(-1) === figure.previousElementSibling) before.push(figure);
    else groups.push([figure]);
  }
  return groups.filter((group) => group.length > 1);
}

function languageOf(figure) {
  return figure.querySelector("figcaption").textContent;
}

/** Puts language buttons above each program. The reader's choice applies to all programs on all pages. */
function offerLanguages() {
  const shows = languageGroups().map((group) => {
    const list = document.createElement("div");
    list.className = "languages";
    list.setAttribute("role", "group");
    list.setAttribute("aria-label", "Language");
    const buttons = group.map((figure) =>
      button(languageOf(figure), () => {
        remember("language", languageOf(figure));
        const { top } = list.getBoundingClientRect();
        for (const show of shows) show(languageOf(figure));
        // Keeps the clicked button in place, because groups above may have changed their height.
        scrollBy(0, list.getBoundingClientRect().top - top);
      }),
    );
    list.append(...buttons);
    group[0].before(list);
    return (language) => {
      const chosen = group.find((figure) => languageOf(figure) === language) ?? group[0];
      for (const [index, figure] of group.entries()) {
        figure.hidden = figure !== chosen;
        buttons[index].setAttribute("aria-pressed", String(figure === chosen));
      }
    };
  });
  for (const show of shows) show(remembered("language"));
}

function searchOnSlash() {
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select") !== null;
    if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    document.querySelector("input[type=search]").focus();
  });
}

// The script runs in the head, so that a page never shows the wrong theme first.
showTheme(remembered("theme"));
document.addEventListener("DOMContentLoaded", () => {
  offerThemes(document.querySelector("body > header"));
  offerLanguages();
  offerCopying();
  searchOnSlash();
});
