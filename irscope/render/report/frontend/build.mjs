// Builds the viewer into ../assets: the loader and the style sheet as they are, the scripts that the loader runs
// deflated, the digests that the page's policy allows, and the licences of what is in them; and tested.mjs for the tests.
// `--out FOLDER` builds elsewhere.
import { build } from "esbuild";
import { deflateSync } from "fflate";
import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { basename, dirname, join } from "node:path";
import { licences } from "./licences.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const at = process.argv.indexOf("--out");
const outdir = at < 0 ? join(here, "..", "assets") : process.argv[at + 1];

const common = { absWorkingDir: here, outdir, bundle: true, minify: true, metafile: true, write: false };

const scripts = await build({
  ...common,
  entryPoints: {
    loader: "src/loader.ts",
    viewer: "src/main.ts",
    graphs: "src/graphs.ts",
  },
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
});
await build({
  ...common,
  entryPoints: ["src/tested.ts"],
  format: "esm",
  outfile: "tested.mjs",
  outdir: undefined,
  write: true,
});
const styles = await build({ ...common, entryPoints: { viewer: "src/viewer.css" } });

mkdirSync(outdir, { recursive: true });
const digests = {};
for (const { path, contents } of [...scripts.outputFiles, ...styles.outputFiles]) {
  const name = basename(path);
  const packed = name.endsWith(".js") && name !== "loader.js";
  if (name.endsWith(".js")) digests[name] = `sha256-${createHash("sha256").update(contents).digest("base64")}`;
  // fflate packs the same on every machine; the zlib of Node does not.
  writeFileSync(
    join(outdir, packed ? `${name}.deflate` : name),
    packed ? deflateSync(contents, { level: 9 }) : contents,
  );
  console.log(`${name}: ${contents.length} bytes`);
}
writeFileSync(join(outdir, "digests.json"), `${JSON.stringify(digests, null, 2)}\n`);
writeFileSync(join(outdir, "THIRD_PARTY.md"), licences(here, [scripts.metafile, styles.metafile]));
