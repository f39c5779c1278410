// The tables of a pair of captures: what went in, what came out, and what each stage and line of Python made of it.
import type { App } from "../app";
import { bodyOf, isOperation } from "../data/comparing";
import { Links } from "../data/links";
import { labelOf, type Capture, type Change, type LineChange, type Tables } from "../data/model";
import type { Payload } from "../data/payload";

const VERSIONS = ["irscope_version", "triton_version", "torch_version", "python_version", "gpu"];
// …/site-packages/triton/language/standard.py: Triton's own lines count for the line that called them.
const LIBRARY = /(?:^|[/\\])triton[/\\](?:language|experimental|runtime|compiler|tools)[/\\]/;

/** The tables; `same` tells of a stage whether its texts say the same, undefined where that is not known yet. */
export function tablesOf(app: App, a: number, b: number, same: (stage: string) => boolean | undefined): Tables {
  const [left, right] = [app.data.captures[a]!, app.data.captures[b]!];
  return {
    differences: [...changed(inputs(left), inputs(right)), ...compilerChanges(left, right)],
    resources: changed(left.resources, right.resources),
    instructions: changed(left.families, right.families),
    stages: stages(app.data, a, b, same),
    passes: passes(left, right),
  };
}

/** The lines of Python whose operations changed in number, the most first; reads every location of both. */
export function lineChanges(data: Payload, a: number, b: number, stages: string[]): LineChange[] {
  const [ours, theirs] = [new Links(data.locations(a)), new Links(data.locations(b))];
  const found = new Map<string, LineChange>();
  for (const stage of stages) {
    const [before, after] = [lineCounts(data, a, stage, ours), lineCounts(data, b, stage, theirs)];
    for (const key of new Set([...before.keys(), ...after.keys()])) {
      const change = (after.get(key) ?? 0) - (before.get(key) ?? 0);
      if (!change) continue;
      const at = key.lastIndexOf(":");
      const row = found.get(key) ?? { file: key.slice(0, at), line: Number(key.slice(at + 1)), stages: [] };
      found.set(key, row);
      row.stages.push([stage, change]);
    }
  }
  const weight = (row: LineChange) => row.stages.reduce((sum, [, change]) => sum + Math.abs(change), 0);
  return [...found.values()].sort((one, other) => weight(other) - weight(one) || one.line - other.line);
}

/** How many operations of a stage each line of Python wrote, those of the library that it called among them. */
function lineCounts(data: Payload, capture: number, stage: string, links: Links): Map<string, number> {
  const counts = new Map<string, number>();
  const row = data.captures[capture]!.stages.find((one) => one.stage === stage);
  if (row?.text === undefined) return counts;
  const { file } = data.captures[capture]!;
  const keys = new Map<number, string>();
  const body = bodyOf(data.lines(row.text), row.kind);
  body.numbers.forEach((number, line) => {
    const chain = isOperation(body, line) ? links.chainAt(stage, number) : -1;
    if (chain < 0) return;
    let key = keys.get(chain);
    if (key === undefined) {
      const frame = links.frames(chain).find((one) => one.file === file || !LIBRARY.test(one.file));
      keys.set(chain, (key = frame ? `${frame.file}:${frame.line}` : ""));
    }
    if (key) counts.set(key, (counts.get(key) ?? 0) + 1);
  });
  return counts;
}

function inputs(capture: Capture): Record<string, unknown> {
  const options = Object.fromEntries(capture.options);
  const versions = VERSIONS.filter((name) => capture.environment[name]);
  // Triton notes the variables in its metadata too, those that only print among them.
  const isVariable = (name: string) => pairs(capture, "parts").length > 0 && name === name.toUpperCase();
  const metadata = capture.metadata.filter(
    ([name, value]) =>
      name !== "extern_libs" && !isVariable(name) && JSON.stringify(options[name]) !== JSON.stringify(value),
  );
  return {
    kernel: capture.kernel,
    target: capture.target,
    plan: capture.plan || "every pass",
    status: capture.status,
    language: capture.language,
    ...Object.fromEntries(capture.signature.map(([name, kind]) => [`signature ${name}`, kind])),
    ...Object.fromEntries(capture.constants.map(([name, value]) => [`constant ${name}`, value])),
    ...Object.fromEntries(capture.attributes.map(([name, value]) => [`attribute ${name}`, value])),
    ...options,
    ...Object.fromEntries(versions.map((name) => [name.replace("_version", ""), capture.environment[name]])),
    ...Object.fromEntries(pairs(capture, "tools").map(([name, version]) => [`${name} version`, version])),
    ...Object.fromEntries(pairs(capture, "variables")),
    ...Object.fromEntries(metadata.map(([name, value]) => [`metadata ${name}`, value])),
  };
}

function pairs(capture: Capture, name: string): [string, string][] {
  return (capture.environment[name] as [string, string][] | undefined) ?? [];
}

/** The sources, libraries and tools that differ, by name; of two versions or backends everything does. */
function compilerChanges(left: Capture, right: Capture): Change[] {
  const [ours, theirs] = [pairs(left, "parts"), pairs(right, "parts")];
  const [one, other] = [left, right].map((side) => side.environment["triton_version"]);
  if (!ours.length !== !theirs.length && one && other) {
    const told = [ours, theirs].map((parts) => (parts.length ? "recorded" : "not recorded"));
    return [{ name: "compiler's contents", left: told[0], right: told[1] }];
  }
  const backends = [left, right].map((side) => side.target.split(":")[0]);
  const alike = one === other && backends[0] === backends[1];
  return alike ? changed(Object.fromEntries(ours), Object.fromEntries(theirs)) : [];
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
