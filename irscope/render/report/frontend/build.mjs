// Builds the viewer into ../assets: three scripts and a style sheet, each one file. `--out FOLDER` builds elsewhere.
import { build } from "esbuild";
import { fileURLToPath } from "node:url";
import { dirname, join } from "node:path";

const here = dirname(fileURLToPath(import.meta.url));
const at = process.argv.indexOf("--out");
const outdir = at < 0 ? join(here, "..", "assets") : process.argv[at + 1];

await build({
  absWorkingDir: here,
  entryPoints: {
    loader: "src/loader.ts",
    viewer: "src/main.ts",
    graphs: "src/graphs.ts",
  },
  outdir,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "none",
  logLevel: "info",
});

await build({
  absWorkingDir: here,
  entryPoints: { viewer: "src/viewer.css" },
  outdir,
  bundle: true,
  minify: true,
  logLevel: "info",
});
