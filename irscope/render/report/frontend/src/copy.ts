// Copies to the clipboard, and says so.
import { button, h } from "./dom";

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Pages from a file may have no clipboard of their own: the old way, through a text field.
    const field = h("textarea", { class: "offscreen", "aria-hidden": "true" });
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  toast(text.includes("\n") ? `Copied ${text.split("\n").length} lines.` : `Copied: ${text.slice(0, 120)}`);
}

export function copyButton(label: string, title: string, text: () => string): HTMLButtonElement {
  return button(label, title, () => void copy(text()), { class: "copy" });
}

export function toast(text: string): void {
  document.querySelector(".toast")?.remove();
  const note = h("div", { class: "toast", role: "status" }, text);
  document.body.append(note);
  setTimeout(() => note.remove(), 2500);
}

const PLAIN = /^[\w@%+=:,./-]+$/;

/** A word as a POSIX shell reads it. */
export function quoted(word: string): string {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function command(...words: string[]): string {
  return ["irscope", ...words].map(quoted).join(" ");
}

/** Saves a text as a file. */
export function save(name: string, text: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
