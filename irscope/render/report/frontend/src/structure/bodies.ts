// The bodies that were read last: along a pipeline each text is the right side once and the left side once.
import type { Kind } from "../data/model";
import { readBody, type Body } from "./body";

const KEPT = 8;
const known = new Map<Kind, Map<string[], Body>>();

/** A text as the comparison reads it. */
export function bodyOf(text: string[], kind: Kind): Body {
  let bodies = known.get(kind);
  if (!bodies) known.set(kind, (bodies = new Map()));
  const found = bodies.get(text) ?? readBody(text.join("\n"), kind);
  bodies.delete(text);
  bodies.set(text, found);
  for (const oldest of bodies.keys()) {
    if (bodies.size <= KEPT) break;
    bodies.delete(oldest);
  }
  return found;
}
