// Makes ../dist of src: the same files from the same sources, on every machine.
import { build } from "esbuild";
import { copyFileSync, mkdirSync, rmSync } from "node:fs";

rmSync("../dist", { recursive: true, force: true });
mkdirSync("../dist");
await build({
  entryPoints: ["src/app.jsx", "src/app.css"],
  outdir: "../dist",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "eof", // the licences of what is bundled
  jsx: "automatic",
  jsxImportSource: "preact",
});
for (const name of ["index.html", "icon.svg"]) copyFileSync(`src/${name}`, `../dist/${name}`);
