// What the tests call and compare with the analysis: built into ../tested.mjs, so that they need no packages.
import "./comparing";
export { valueIn } from "./code/values";
export { withNumbers } from "./data/numbers";
export { wordMarks } from "./data/marks";
export { fillOf } from "./layout/colors";
export { countsOf } from "./structure/counts";
export { diffTexts } from "./structure/structural";
