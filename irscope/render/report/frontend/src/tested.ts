// What the tests call and compare with the analysis: built into ../tested.mjs, so that they need no packages.
import { Plain, Values, type PackedValues, type Value } from "./data/columns";
import { unpacked, type Diff, type PackedDiff } from "./data/diff";

export { wholeOf } from "./data/columns";
export { withNumbers } from "./data/numbers";
export { wordMarks } from "./data/marks";
export { percent } from "./format";
export { fillOf } from "./layout/colors";

type Text = [string[], string[] | undefined];

export function diffOf(packed: PackedDiff, left: Text, right: Text): Diff {
  return unpacked(packed, new Plain(...left), new Plain(...right));
}

export function valueIn(text: Text, packed: PackedValues, name: string, number: number): Value {
  return new Values(new Plain(...text), packed).of(name, number);
}
