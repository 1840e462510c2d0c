// Bundles Browsertime's program and all modules that it uses, without changing what they do. Node starts the bundle in
// half the time that it needs to find and load some 750 files.
//
// usage: node setup/bundle_browsertime.mjs PACKAGE    the folder of Browsertime's package
//
// `bundle/browsertime.mjs` in the package exports `program`, which runs the program, and `part`, which returns a module
// of `lib` by its path without ".js". The program uses the same instances of these modules. None is evaluated before it
// is needed. `bundle/program.mjs` runs the program; it is written last, so the bundle is complete if it is there.
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const folder = resolve(process.argv[2]);
const { build } = createRequire(join(folder, "package.json"))("esbuild");

const ENTRY = `
export const part = (path) => import(\`./lib/\${path}.js\`);
export const program = () => import("./bin/browsertime.js");
`;
const PROGRAM = `#!/usr/bin/env node
import { program } from "./browsertime.mjs";
await program();
`;

// Modules find their other files as before: the places of their own files are written into them.
const places = {
  name: "places",
  setup({ onLoad }) {
    onLoad({ filter: /\.[cm]?js$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      if (text.includes("import.meta.url"))
        return { contents: text.replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path))) };
      const known = { __dirname: dirname(path), __filename: path };
      return { contents: text.replace(/\b__(dir|file)name\b/g, (name) => JSON.stringify(known[name])) };
    });
  },
};

const exceptions = {
  name: "exceptions",
  setup({ onLoad }) {
    // These functions run in pages, where they lack the helpers of a bundle, so they remain in their own files.
    onLoad({ filter: /\/selenium-webdriver\/lib\/atoms\// }, ({ path }) => ({
      contents: `const file = ${JSON.stringify(path)}; module.exports = require(file);`,
    }));
    // This drives Android's browsers, and would be an eighth of the time.
    onLoad({ filter: /\/@devicefarmer\/adbkit\/dist\/index\.js$/ }, () => ({ contents: "" }));
  },
};

await build({
  absWorkingDir: dirname(folder),
  stdin: { contents: ENTRY, resolveDir: folder },
  outfile: join(folder, "bundle", "browsertime.mjs"),
  bundle: true,
  format: "esm",
  platform: "node",
  target: `node${process.versions.node}`,
  // Names of classes are those of errors, such as "TimeoutError". Several modules have one of that name.
  keepNames: true,
  // Browsertime imports these only if it needs them. The last one is not valid in a module.
  external: ["@sitespeed.io/*driver", "jimp", "usb-power-profiling"],
  banner: { js: 'const require = process.getBuiltinModule("module").createRequire(import.meta.url);' },
  plugins: [exceptions, places],
  logLevel: "warning",
});
await writeFile(join(folder, "bundle", "program.mjs"), PROGRAM, { mode: 0o755 });
