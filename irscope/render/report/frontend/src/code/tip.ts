// One tooltip for the page: it follows what the mouse rests on, and stays out of its way.
import { fill, h } from "../dom";

const tip = h("div", { class: "tip", role: "tooltip", hidden: true });

export function showTip(event: MouseEvent, ...content: (Node | string | null)[]): void {
  const kept = content.filter((one) => one !== null && one !== "");
  if (!kept.length) return hideTip();
  if (!tip.isConnected) document.body.append(tip);
  fill(tip, ...kept);
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const x = Math.min(event.clientX + 14, innerWidth - width - 8);
  const below = event.clientY + 18;
  const y = below + height > innerHeight - 8 ? event.clientY - height - 12 : below;
  tip.style.left = `${Math.max(4, x)}px`;
  tip.style.top = `${Math.max(4, y)}px`;
}

export function hideTip(): void {
  tip.hidden = true;
}
