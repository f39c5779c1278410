// What the script `comparing` gives to the viewer, which runs after it.
import type { Comparing } from "../comparing";

export const { bodyOf, countsOf, diffTexts, inflateSync, isOperation, recent, Texts, WINDOW } = (
  globalThis as unknown as { irscopeComparing: Comparing }
).irscopeComparing;
