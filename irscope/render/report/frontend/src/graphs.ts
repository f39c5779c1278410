// Graphviz, compiled to WebAssembly: in a page only where `dot` placed no graph, and started when one is asked for.
import { instance } from "@viz-js/viz";

/** Places a graph in the DOT language, and gives it as SVG. */
async function layOut(dot: string): Promise<string> {
  return (await instance()).renderString(dot, { format: "svg", engine: "dot" });
}

(globalThis as { irscopeLayOut?: typeof layOut }).irscopeLayOut = layOut;
