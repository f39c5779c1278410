// The tables of a pair that was not compared beforehand, from what the index says of both.
import type { App } from "../app";
import { labelOf, type Capture, type Change, type Tables } from "../data/model";

export function localTables(app: App, a: number, b: number): Tables {
  const [left, right] = [app.data.captures[a]!, app.data.captures[b]!];
  return {
    empty: false,
    differences: changed(inputs(left), inputs(right)),
    resources: changed(left.resources, right.resources),
    instructions: changed(left.families, right.families),
    lines: [],
    stages: stages(left, right),
    passes: passes(left, right),
  };
}

function inputs(capture: Capture): Record<string, unknown> {
  return {
    kernel: capture.kernel,
    target: capture.target,
    plan: capture.plan || "every pass",
    status: capture.status,
    ...Object.fromEntries(capture.signature.map(([name, kind]) => [`signature ${name}`, kind])),
    ...Object.fromEntries(capture.constants.map(([name, value]) => [`constant ${name}`, value])),
    ...Object.fromEntries(capture.attributes.map(([name, value]) => [`attribute ${name}`, value])),
    ...Object.fromEntries(capture.options),
    triton: capture.environment["triton_version"],
  };
}

function changed(left: Record<string, unknown>, right: Record<string, unknown>): Change[] {
  const names = [...new Set([...Object.keys(left), ...Object.keys(right)])];
  const rows = names.map((name) => ({ name, left: left[name] ?? null, right: right[name] ?? null }));
  return rows.filter((row) => JSON.stringify(row.left) !== JSON.stringify(row.right));
}

function stages(left: Capture, right: Capture): Tables["stages"] {
  const names = [...new Set([...left.stages, ...right.stages].map((row) => row.stage))];
  return names.map((stage) => {
    const [one, other] = [left, right].map((side) => side.stages.find((row) => row.stage === stage));
    const same = one && other && one.text !== undefined && one.text === other.text;
    const state = !one ? "right only" : !other ? "left only" : same ? "identical" : "differs";
    return { stage, state, operations: [one?.operations ?? 0, other?.operations ?? 0], changes: [], summary: "" };
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
