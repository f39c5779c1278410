// Unpacks the viewer and starts it. The page's policy allows each script by its hash; this one is not packed.
import { bytesOf } from "./data/base85";

interface Policy {
  createScript(code: string): string;
}

const factory = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: Policy): Policy } }).trustedTypes;
const policy: Policy = factory?.createPolicy("irscope", { createScript: (code) => code }) ?? {
  createScript: (code) => code,
};

async function unpacked(element: HTMLElement): Promise<string> {
  const stream = new Blob([bytesOf(element.textContent ?? "")])
    .stream()
    .pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}

/** Runs a packed script of the page; a script that the policy does not know is refused by the browser. */
async function run(id: string): Promise<void> {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page holds no script ${id}`);
  const script = document.createElement("script");
  script.textContent = policy.createScript(await unpacked(element));
  document.head.append(script);
}

(globalThis as { irscopeRun?: typeof run }).irscopeRun = run;
void run("viewer");
