// Light, dark, or as the system has it.
import { h } from "./dom";

const THEMES = ["auto", "light", "dark"] as const;
const SIGNS = { auto: "◐", light: "☀", dark: "☾" };
const button = h("button", { type: "button", title: "Light or dark (t)", onclick: () => toggleTheme() });

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => listeners.forEach((one) => one()));

function current(): (typeof THEMES)[number] {
  const named = document.documentElement.dataset["theme"];
  return named === "light" || named === "dark" ? named : "auto";
}

const listeners: (() => void)[] = [];

/** Calls whenever the page becomes light or dark. */
export function onTheme(listener: () => void): void {
  listeners.push(listener);
}

export function toggleTheme(): void {
  const next = THEMES[(THEMES.indexOf(current()) + 1) % THEMES.length]!;
  if (next === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = next;
  button.textContent = SIGNS[next];
  for (const listener of listeners) listener();
}

export function themeButton(): HTMLElement {
  button.textContent = SIGNS[current()];
  return button;
}
