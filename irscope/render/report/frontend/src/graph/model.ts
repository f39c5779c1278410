// Graphs of a stage's text: of values in MLIR, of basic blocks in assembly and LLVM IR.
import type { Kind } from "../data/model";
import { bodyOf } from "../structure/bodies";

export interface Node {
  label: string;
  /** What stands under the label. */
  detail: string;
  /** 1-based first and last line. */
  line: number;
  end: number;
  group: number;
  style: string;
}

export interface Edge {
  from: number;
  to: number;
  label: string;
}

export interface Group {
  label: string;
  parent: number;
  line: number;
}

export interface Graph {
  nodes: Node[];
  edges: Edge[];
  groups: Group[];
  note: string;
}

export const MOST_NODES = 420;

export function graphOf(lines: string[], kind: Kind, withConstants: boolean): Graph {
  const graph = kind === "mlir" ? valuesOf(lines, withConstants) : blocksOf(lines, kind);
  if (graph.nodes.length <= MOST_NODES) return graph;
  if (kind === "mlir" && /\bllvm\.func\b/.test(lines.slice(0, 400).join("\n")))
    return { nodes: [], edges: [], groups: [], note: "This text is too large for a graph of its values." };
  const nodes = graph.nodes.slice(0, MOST_NODES);
  const edges = graph.edges.filter((edge) => edge.from < MOST_NODES && edge.to < MOST_NODES);
  return { ...graph, nodes, edges, note: `The first ${MOST_NODES} of ${graph.nodes.length} nodes.` };
}

const OPERATION = /^\s*(?:%.*? = )?"?([A-Za-z_][\w.]*\.[\w.]+|module)"?/;
const TYPE = /: ([^:]*)$/;

function valuesOf(lines: string[], withConstants: boolean): Graph {
  const graph: Graph = { nodes: [], edges: [], groups: [], note: "" };
  const body = bodyOf(lines, "mlir");
  /** Value -> the node that makes it, or whose block it is an argument of. */
  const makers = new Map<number, number>();
  const readers: [number, number][] = [];
  const stack: { group: number; node: number }[] = [];
  body.lines.forEach((line, at) => {
    const text = line.trim();
    const number = body.numbers[at]!;
    const shape = body.shapes[at]!;
    const begin = (label: string, parent: number, node: number) =>
      stack.push({ group: graph.groups.push({ label, parent, line: number }) - 1, node });
    if (shape.closes) {
      const closed = stack.pop();
      const parent = closed ? graph.groups[closed.group]!.parent : -1;
      if (shape.opens) begin(text.replace(/[{}]/g, "").trim(), parent, closed?.node ?? -1);
      return;
    }
    const operation = OPERATION.exec(line)?.[1];
    const group = stack.at(-1)?.group ?? -1;
    if (!operation && !shape.opens) return;
    const isConstant = operation?.endsWith(".constant") ?? false;
    if (isConstant && !withConstants) return;
    const made = shape.defines.map((place) => body.values[at]![place]!);
    const place = { line: number, end: number };
    let node = -1;
    if (shape.isFunction) {
      for (const value of made) {
        const label = body.names[value]!;
        const row = { label, detail: "argument", ...place, group: -1, style: "argument" };
        makers.set(value, graph.nodes.push(row) - 1);
      }
    } else if (operation && operation !== "module") {
      node =
        graph.nodes.push({ label: operation, detail: typeOf(text), ...place, group, style: styleOf(operation) }) - 1;
      for (const value of made) makers.set(value, node);
      for (const value of new Set(body.uses[at])) readers.push([value, node]);
    }
    if (shape.opens) begin(operation ?? text, group, node);
  });
  for (const [value, to] of readers) {
    const from = makers.get(value);
    if (from !== undefined && from !== to) graph.edges.push({ from, to, label: body.names[value]! });
  }
  const used = new Set(graph.edges.flatMap((edge) => [edge.from, edge.to]));
  return pruned(graph, (node, number) => node.style !== "argument" || used.has(number));
}

function pruned(graph: Graph, keep: (node: Node, number: number) => boolean): Graph {
  const numbers = new Map<number, number>();
  const nodes = graph.nodes.filter((node, number) => {
    const kept = keep(node, number);
    if (kept) numbers.set(number, numbers.size);
    return kept;
  });
  const edges = graph.edges.flatMap((edge) => {
    const [from, to] = [numbers.get(edge.from), numbers.get(edge.to)];
    return from === undefined || to === undefined ? [] : [{ ...edge, from, to }];
  });
  return { ...graph, nodes, edges };
}

function typeOf(text: string): string {
  const type = TYPE.exec(text.replace(/ loc\(.*$/, ""))?.[1] ?? "";
  const last = type.includes("->") ? type.slice(type.lastIndexOf("->") + 2).trim() : type;
  return last.length > 44 ? `${last.slice(0, 43)}…` : last.replace(/ \{$/, "");
}

function styleOf(operation: string): string {
  if (/convert_layout/.test(operation)) return "convert";
  if (/dot|mma/.test(operation)) return "product";
  if (/local_|memdesc|async|tmem|barrier/.test(operation)) return "shared";
  if (/load|store|atomic/.test(operation)) return "memory";
  return /^(?:scf|cf)\./.test(operation) ? "control" : "plain";
}

const LABEL: Partial<Record<Kind, RegExp>> = {
  llvm: /^([\w$.-]+|"[^"]*"):/,
  ptx: /^\s*(\$L\w+):/,
  sass: /^\s*(\.L_\w+):/,
  amdgcn: /^(\.LBB\w+|[\w$]+):/,
};
const FUNCTION: Partial<Record<Kind, RegExp>> = {
  llvm: /^define .*@([\w$.]+)/,
  ptx: /\.(?:entry|func)\s+(?:\([^)]*\)\s*)?([\w$]+)/,
  sass: /^\s*\.section\s+\.text\.(\w+)/,
};
const JUMP: Partial<Record<Kind, RegExp>> = {
  llvm: /\b(?:br|switch)\b/,
  ptx: /\bbra(?:\.uni)?\b/,
  sass: /\bBRA\b/,
  amdgcn: /\bs_c?branch\w*/,
};
const TARGET: Partial<Record<Kind, RegExp>> = {
  llvm: /label %([\w$.-]+|"[^"]*")/g,
  ptx: /\$L\w+/g,
  sass: /\.L_\w+/g,
  amdgcn: /\.LBB\w+/g,
};
const ENDS: Partial<Record<Kind, RegExp>> = {
  llvm: /^\s*(?:ret|br|switch|unreachable)\b/,
  ptx: /^\s*(?:ret|bra(?:\.uni)?|exit)\b/,
  sass: /^(?!.*@).*\b(?:EXIT|BRA|RET)\b/,
  amdgcn: /\b(?:s_branch|s_endpgm)\b/,
};

function blocksOf(lines: string[], kind: Kind): Graph {
  const graph: Graph = { nodes: [], edges: [], groups: [], note: "" };
  const names = new Map<string, number>();
  const jumps: { from: number; name: string }[] = [];
  let current = -1;
  let falls = false;
  const begin = (label: string, index: number) => {
    const node =
      graph.nodes.push({
        label,
        detail: "0 instructions",
        line: index + 1,
        end: index + 1,
        group: -1,
        style: "plain",
      }) - 1;
    if (current >= 0 && falls) graph.edges.push({ from: current, to: node, label: "" });
    current = node;
    falls = true;
    return node;
  };
  lines.forEach((line, index) => {
    const head = FUNCTION[kind]?.exec(line)?.[1];
    if (head !== undefined) {
      current = -1;
      names.set("0", begin(head, index));
      return;
    }
    const label = LABEL[kind]?.exec(line)?.[1];
    if (label !== undefined && !/^\$L__(?:tmp|func|info)/.test(label)) {
      if (current >= 0 || kind === "amdgcn") names.set(label, begin(label, index));
      return;
    }
    if (/^\}/.test(line)) current = -1;
    const node = graph.nodes[current];
    if (!node || !/^\s+\S/.test(line) || /^\s*(?:\/\/|;|\.|#)/.test(line)) return;
    node.end = index + 1;
    node.detail = `${Number.parseInt(node.detail, 10) + 1} instructions`;
    if (JUMP[kind]?.test(line)) {
      for (const match of line.matchAll(TARGET[kind]!)) jumps.push({ from: current, name: match[1] ?? match[0] });
    }
    if (ENDS[kind]?.test(line)) falls = false;
  });
  for (const { from, name } of jumps) {
    const to = names.get(name);
    if (to !== undefined) graph.edges.push({ from, to, label: to <= from ? "back" : "" });
  }
  return graph;
}
