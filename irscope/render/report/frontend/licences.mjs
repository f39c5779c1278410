// The licences of everything that a build put into the assets, as one text: from the packages themselves, so that it
// can't fall behind them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Graphviz } from "@hpcc-js/wasm-graphviz";

const PACKAGE = /^(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)\//;

// What packages carry within their WebAssembly, where no package manager sees it.
const WITHIN = {
  "@hpcc-js/wasm-graphviz": async () => {
    const version = (await Graphviz.load()).version();
    return [
      {
        title: `Graphviz ${version}`,
        licence: "EPL-1.0",
        source: `https://gitlab.com/graphviz/graphviz/-/archive/${version}/graphviz-${version}.tar.gz`,
        notice: "Copyright (c) AT&T Intellectual Property and the Graphviz contributors. Not modified by irscope.",
      },
      {
        title: "Expat",
        licence: "MIT",
        source: "https://github.com/libexpat/libexpat",
        notice:
          "Copyright (c) 1998-2000 Thai Open Source Software Center Ltd and Clark Cooper\n" +
          "Copyright (c) 2001 onwards Expat maintainers",
      },
      {
        title: "Emscripten's runtime library, with musl",
        licence: "MIT",
        source: "https://github.com/emscripten-core/emscripten",
        notice: "Copyright (c) 2010-2014 Emscripten authors\nCopyright (c) 2005-2020 Rich Felker, et al.",
      },
    ];
  },
};

/** Markdown: a table, then every text. `metafiles` are what esbuild says of its builds. */
export async function licences(folder, metafiles) {
  const names = new Set();
  for (const file of metafiles.flatMap((one) => Object.keys(one.inputs))) {
    const name = PACKAGE.exec(file)?.[1];
    if (name) names.add(name);
  }
  const parts = [];
  for (const name of [...names].sort()) {
    const home = join(folder, "node_modules", name);
    const about = JSON.parse(readFileSync(join(home, "package.json"), "utf-8"));
    const file = readdirSync(home).find((one) => /^(?:licen[cs]e|copying)/i.test(one));
    if (!file) throw new Error(`${name} has no licence file: say in licences.mjs where its licence is`);
    const url = (about.repository?.url ?? about.repository ?? about.homepage ?? "").replace(/^git\+|\.git$/g, "");
    const text = readFileSync(join(home, file), "utf-8");
    parts.push({ title: `${name} ${about.version}`, licence: about.license, source: url, text });
    for (const one of (await WITHIN[name]?.()) ?? []) {
      const { licenseText } = JSON.parse(
        readFileSync(join(folder, "node_modules/spdx-license-list/licenses", `${one.licence}.json`), "utf-8"),
      );
      const text = licenseText.replace(/^.*Copyright \(c\) <year>.*$/m, "");
      parts.push({ ...one, title: `${one.title}, within ${name}`, text: `${one.notice}\n\n${text.trim()}` });
    }
  }
  return [
    "# What the report's viewer is built with",
    "",
    "Written by `npm run build`: the packages that `viewer.js` and `graphs.js` contain, and their licences. The source of",
    "each is at the address that stands with it.",
    "",
    "| package | licence | source |",
    "|---|---|---|",
    ...parts.map((one) => `| ${one.title} | ${one.licence} | <${one.source}> |`),
    ...parts.flatMap((one) => ["", `## ${one.title}`, "", "```text", one.text.replace(/\r/g, "").trim(), "```"]),
    "",
  ].join("\n");
}
