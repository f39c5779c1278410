// Graphviz, compiled to WebAssembly: started when a graph is first asked for.
import { instance } from "@viz-js/viz";

/** Lays a graph out and gives Graphviz's own JSON: places and sizes, and no markup. */
async function layOut(dot: string): Promise<string> {
  return (await instance()).renderString(dot, { format: "json", engine: "dot" });
}

(globalThis as { irscopeLayOut?: typeof layOut }).irscopeLayOut = layOut;
