// Runs Perfetto's trace processor, which is WebAssembly, as its page does: node engine.js FOLDER < requests > replies.
// FOLDER is that of the built page; requests and replies are streams of TraceProcessorRpc.
"use strict";

const fs = require("node:fs");
const path = require("node:path");

const folder = process.argv[2];

class Request {
  open(_, name) {
    this.response = fs.readFileSync(path.join(folder, path.basename(name)));
  }
  send() {}
}

const worker = { location: { href: "file:///engine_bundle.js" } };
const messages = { log: console.error, warn: console.error, error: console.error };
const replies = [];
const port = { postMessage: (reply) => replies.push(reply) };
// The bundle is for a worker of a page: by these it sees that it is in one.
const names = ["self", "WorkerGlobalScope", "XMLHttpRequest", "console", "process"];
const bundle = fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8");
new Function(...names, bundle)(worker, class {}, Request, messages, undefined);
worker.onmessage({ data: port });
setImmediate(() => {
  port.onmessage({ data: new Uint8Array(fs.readFileSync(0)) });
  process.stdout.write(Buffer.concat(replies));
});
