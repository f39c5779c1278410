// Graphviz, compiled to WebAssembly: started when a graph is first asked for.
import { Graphviz } from "@hpcc-js/wasm-graphviz";

/** Lays a graph out and gives Graphviz's own JSON: places and sizes, and no markup. */
async function layOut(dot: string): Promise<string> {
  const graphviz = await Graphviz.load();
  return graphviz.layout(dot, "json", "dot");
}

(globalThis as { irscopeLayOut?: typeof layOut }).irscopeLayOut = layOut;
