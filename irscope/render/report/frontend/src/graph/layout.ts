// Places a graph with Graphviz. Only numbers go in and come out: no text of a capture is ever part of the DOT.
import type { Graph } from "./model";

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface Placed {
  width: number;
  height: number;
  nodes: Box[];
  groups: (Box | undefined)[];
  /** SVG path data; empty for an edge that was not drawn. */
  edges: string[];
}

interface Json {
  bb?: string;
  objects?: { name: string; bb?: string; pos?: string; width?: string; height?: string }[];
  edges?: { pos?: string; class?: string }[];
}

declare const globalThis: {
  irscopeRun?: (id: string) => Promise<void>;
  irscopeLayOut?: (dot: string) => Promise<string>;
};

const CHARACTER = 7.3;
export const NODE_HEIGHT = 38;

export async function place(graph: Graph): Promise<Placed> {
  if (!globalThis.irscopeLayOut) await globalThis.irscopeRun?.("graphs");
  const json = JSON.parse(await globalThis.irscopeLayOut!(dotOf(graph))) as Json;
  const [, , width, height] = numbers(json.bb ?? "0,0,0,0") as [number, number, number, number];
  const placed: Placed = {
    width,
    height,
    nodes: [],
    groups: graph.groups.map(() => undefined),
    edges: graph.edges.map(() => ""),
  };
  for (const object of json.objects ?? []) {
    const number = Number(object.name.replace(/^\D+/, ""));
    if (object.name[0] === "n" && object.pos) {
      const [x, y] = numbers(object.pos) as [number, number];
      const size = [Number(object.width) * 72, Number(object.height) * 72] as const;
      placed.nodes[number] = { x: x - size[0] / 2, y: height - y - size[1] / 2, width: size[0], height: size[1] };
    } else if (object.bb) {
      const [left, bottom, right, top] = numbers(object.bb) as [number, number, number, number];
      placed.groups[number] = { x: left, y: height - top, width: right - left, height: top - bottom };
    }
  }
  for (const edge of json.edges ?? []) {
    placed.edges[Number(edge.class)] = pathOf(edge.pos ?? "", height);
  }
  return placed;
}

function dotOf(graph: Graph): string {
  const parts = [
    "digraph g {",
    "graph [ranksep=0.35, nodesep=0.2, rankdir=TB];",
    'node [shape=box, fixedsize=true, label=""];',
    "edge [arrowsize=0.6];",
  ];
  const inside = (group: number): string[] => [
    ...graph.groups.flatMap((one, number) =>
      one.parent === group ? [`subgraph cluster${number} { margin=10;`, ...inside(number), "}"] : [],
    ),
    ...graph.nodes.flatMap((node, number) => {
      if (node.group !== group) return [];
      const width = Math.max(12, node.label.length, node.detail.length) * CHARACTER + 16;
      return [`n${number} [width=${(width / 72).toFixed(3)}, height=${(NODE_HEIGHT / 72).toFixed(3)}];`];
    }),
  ];
  parts.push(...inside(-1));
  graph.edges.forEach((edge, number) => parts.push(`n${edge.from} -> n${edge.to} [class="${number}"];`));
  parts.push("}");
  return parts.join("\n");
}

function numbers(text: string): number[] {
  return text.split(",").map(Number);
}

/** "e,10,20 1,2 3,4 5,6 7,8" as a path that ends at the arrow's tip. */
function pathOf(position: string, height: number): string {
  const words = position.split(" ").filter(Boolean);
  const tip = words.find((word) => word.startsWith("e,"));
  const points = words.filter((word) => !/^[es],/.test(word)).map((word) => numbers(word));
  const text = ([x, y]: number[]) => `${x!.toFixed(1)},${(height - y!).toFixed(1)}`;
  if (!points.length) return "";
  const curves = points.slice(1).map(text).join(" ");
  return `M${text(points[0]!)}C${curves}${tip ? `L${text(numbers(tip.slice(2)))}` : ""}`;
}
