// The tables of a pair of captures: what went in, what came out, and what each stage and line of Python made of it.
import type { App } from "../app";
import { labelOf, type Capture, type Change, type LineChange, type Tables } from "../data/model";
import type { Payload } from "../data/payload";

/** The tables; `same` tells of a stage whether its texts say the same, undefined where that is not known yet. */
export function tablesOf(app: App, a: number, b: number, same: (stage: string) => boolean | undefined): Tables {
  const [left, right] = [app.data.captures[a]!, app.data.captures[b]!];
  return {
    differences: inputChanges(app.data, a, b),
    resources: changed(left.resources, right.resources),
    instructions: changed(left.families, right.families),
    stages: stages(app.data, a, b, same),
    passes: passes(left, right),
  };
}

/** The lines of Python whose operations changed in number, the most first. */
export function lineChanges(data: Payload, a: number, b: number, stages: string[]): LineChange[] {
  const found = new Map<string, LineChange>();
  const counts = (capture: number, stage: string) =>
    new Map((data.counted(capture).lines?.[stage] ?? []).map((row) => [`${row[1]}:${row[0]}`, row]));
  for (const stage of stages) {
    const [before, after] = [counts(a, stage), counts(b, stage)];
    for (const key of new Set([...before.keys(), ...after.keys()])) {
      const change = (after.get(key)?.[2] ?? 0) - (before.get(key)?.[2] ?? 0);
      const [file, line] = (after.get(key) ?? before.get(key))!;
      if (!change) continue;
      const row = found.get(key) ?? { file, line, stages: [] };
      found.set(key, row);
      row.stages.push([stage, change]);
    }
  }
  const weight = (row: LineChange) => row.stages.reduce((sum, [, change]) => sum + Math.abs(change), 0);
  return [...found.values()].sort((one, other) => weight(other) - weight(one) || one.line - other.line);
}

/** What went in and differs, and of one Triton and backend the compiler's files that do. */
function inputChanges(data: Payload, a: number, b: number): Change[] {
  const [left, right] = [data.counted(a), data.counted(b)];
  const [ours, theirs] = [left.parts ?? {}, right.parts ?? {}];
  const versions = [a, b].map((side) => {
    const { environment, target } = data.captures[side]!;
    return `${String(environment["triton_version"])} ${target.split(":")[0]}`;
  });
  const comparable = versions[0] === versions[1] && Object.keys(ours).length && Object.keys(theirs).length;
  return [...changed(left.inputs ?? {}, right.inputs ?? {}), ...(comparable ? changed(ours, theirs) : [])];
}

function changed(left: Record<string, unknown>, right: Record<string, unknown>): Change[] {
  const names = [...new Set([...Object.keys(left), ...Object.keys(right)])];
  const rows = names.map((name) => ({ name, left: left[name] ?? null, right: right[name] ?? null }));
  return rows.filter((row) => JSON.stringify(row.left) !== JSON.stringify(row.right));
}

function stages(data: Payload, a: number, b: number, same: (stage: string) => boolean | undefined): Tables["stages"] {
  const [left, right] = [data.captures[a]!, data.captures[b]!];
  const names = [...new Set([...left.stages, ...right.stages].map((row) => row.stage))];
  return names.map((stage) => {
    const [one, other] = [left, right].map((side) => side.stages.find((row) => row.stage === stage));
    const identical = one && other && (one.text === undefined ? one.digest === other.digest : one.text === other.text);
    const [before, after] = [data.operations(a, stage), data.operations(b, stage)];
    const changes = [...new Set([...before.keys(), ...after.keys()])]
      .map((name): [string, number] => [name, (after.get(name) ?? 0) - (before.get(name) ?? 0)])
      .filter(([, change]) => change)
      .sort((x, y) => Math.abs(y[1]) - Math.abs(x[1]) || (x[0] < y[0] ? -1 : 1));
    const total = (counts: Map<string, number>) => [...counts.values()].reduce((sum, count) => sum + count, 0);
    return {
      stage,
      state: !one ? "right only" : !other ? "left only" : identical ? "identical" : same(stage) ? "same" : "differs",
      operations: [total(before), total(after)],
      changes: one && other ? changes : [],
    };
  });
}

function passes(left: Capture, right: Capture): Tables["passes"] {
  const [ours, theirs] = [left, right].map(
    (side) => new Map(side.passes.filter((pass) => pass.group === "mlir").map((pass) => [labelOf(pass), pass])),
  );
  return [...new Set([...ours!.keys(), ...theirs!.keys()])].map((label) => {
    const [one, other] = [ours!.get(label), theirs!.get(label)];
    return {
      label,
      left_us: one?.us ?? null,
      right_us: other?.us ?? null,
      outcome: [one?.outcome ?? "absent", other?.outcome ?? "absent"],
    };
  });
}
