// Light, dark, or as the system has it.
import { h } from "./dom";

const THEMES = ["auto", "light", "dark"] as const;
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };
const button = h("button", { type: "button", title: "Light or dark (t)", onclick: () => toggleTheme() });

function current(): (typeof THEMES)[number] {
  const named = document.documentElement.dataset["theme"];
  return named === "light" || named === "dark" ? named : "auto";
}

export function toggleTheme(): void {
  const next = THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length]!;
  if (next === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = next;
  button.textContent = SIGNS[next];
}

export function themeButton(): HTMLElement {
  button.textContent = SIGNS[current()];
  return button;
}
