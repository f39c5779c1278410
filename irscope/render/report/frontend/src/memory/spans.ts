// Figures that may lie between two bounds, as text.
import { MOST, type Span, type Traffic } from "../data/memory";
import { count } from "../format";

export const isKnown = ([low, high]: Span): boolean => low === high;

/** `4,096`, `10 to 20`, `at least 10`, or that it is not known. */
export function spanText(span: Span): string {
  const [low, high] = span;
  if (isKnown(span)) return count(low);
  if (high < MOST) return `${count(low)} to ${count(high)}`;
  return low ? `at least ${count(low)}` : "not known";
}

/** What one figure has more than another that it is never below. */
export function difference([low, high]: Span, [least, most]: Span): Span {
  return [Math.max(low - most, 0), high < MOST ? high - least : MOST];
}

export const isSame = (one: Traffic, other: Traffic): boolean => JSON.stringify(one) === JSON.stringify(other);
