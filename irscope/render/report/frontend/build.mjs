// Builds the viewer into ../assets: three scripts, a style sheet and the licences of what is in them. `--out FOLDER`
// builds elsewhere.
import { build } from "esbuild";
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { dirname, join } from "node:path";
import { licences } from "./licences.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const at = process.argv.indexOf("--out");
const outdir = at < 0 ? join(here, "..", "assets") : process.argv[at + 1];

const common = { absWorkingDir: here, outdir, bundle: true, minify: true, metafile: true, logLevel: "info" };

const scripts = await build({
  ...common,
  entryPoints: {
    loader: "src/loader.ts",
    viewer: "src/main.ts",
    graphs: "src/graphs.ts",
  },
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
});

const styles = await build({ ...common, entryPoints: { viewer: "src/viewer.css" } });

writeFileSync(join(outdir, "THIRD_PARTY.md"), await licences(here, [scripts.metafile, styles.metafile]));
