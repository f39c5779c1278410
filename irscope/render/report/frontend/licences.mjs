// The licences of everything that a build put into the assets, as one text: from the packages themselves, so that it
// can't fall behind them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { graphvizVersion } from "@viz-js/viz";

const PACKAGE = /^(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)\//;

// What packages carry within their WebAssembly, where no package manager sees it.
const WITHIN = {
  "@viz-js/viz": [
    {
      title: `Graphviz ${graphvizVersion}`,
      licence: "EPL-1.0",
      source: `https://gitlab.com/graphviz/graphviz/-/archive/${graphvizVersion}/graphviz-${graphvizVersion}.tar.gz`,
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
  ],
};

// Packages that name their licence and hold no text of it: whose it is.
const COPYRIGHT = { "@viz-js/viz": "Copyright (c) Michael Daines" };

/** The text of a licence that SPDX names, under a notice of whose it is. */
function standard(folder, licence, notice) {
  const file = join(folder, "node_modules/spdx-license-list/licenses", `${licence}.json`);
  const text = JSON.parse(readFileSync(file, "utf-8")).licenseText.replace(/^.*Copyright \(c\) <year>.*$/m, "");
  return `${notice}\n\n${text.trim()}`;
}

/** Markdown: a table, then every text. `metafiles` are what esbuild says of its builds. */
export function licences(folder, metafiles) {
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
    if (!file && !COPYRIGHT[name]) throw new Error(`${name} has no licence file: say in licences.mjs whose it is`);
    const url = (about.repository?.url ?? about.repository ?? about.homepage ?? "").replace(/^git\+|\.git$/g, "");
    const text = file ? readFileSync(join(home, file), "utf-8") : standard(folder, about.license, COPYRIGHT[name]);
    parts.push({ title: `${name} ${about.version}`, licence: about.license, source: url, text });
    for (const one of WITHIN[name] ?? []) {
      parts.push({ ...one, title: `${one.title}, within ${name}`, text: standard(folder, one.licence, one.notice) });
    }
  }
  return [
    "# What the report's viewer is built with",
    "",
    "Written by `npm run build`: the packages that the viewer and its graphs contain, and their licences. The source of",
    "each is at the address that stands with it.",
    "",
    "| package | licence | source |",
    "|---|---|---|",
    ...parts.map((one) => `| ${one.title} | ${one.licence} | <${one.source}> |`),
    ...parts.flatMap((one) => ["", `## ${one.title}`, "", "```text", one.text.replace(/\r/g, "").trim(), "```"]),
    "",
  ].join("\n");
}
