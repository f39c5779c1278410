// Unpacks the viewer and starts it. The page's policy allows each script by its hash; this one is not packed.
import { bytesOf } from "./data/base85";

interface Policy {
  createScript(code: string): string;
}

const factory = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: Policy): Policy } }).trustedTypes;
const rules: Policy = { createScript: (code) => code };
const policy = factory?.createPolicy("irscope", rules) ?? rules;

async function unpacked(id: string): Promise<string> {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page holds no script ${id}`);
  const stream = new Blob([bytesOf(element.textContent ?? "")])
    .stream()
    .pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).text();
}

/** Runs packed scripts of the page in this order; a script that the policy does not know is refused by the browser. */
async function run(...ids: string[]): Promise<void> {
  for (const code of await Promise.all(ids.map(unpacked))) {
    const script = document.createElement("script");
    script.textContent = policy.createScript(code);
    document.head.append(script);
  }
}

Object.assign(globalThis, { irscopeRun: run });
void run("viewer");
