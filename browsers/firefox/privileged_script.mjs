// For modules that are loaded into Browsertime's Node before Browsertime itself: a script of this folder is run in
// Firefox itself, with its rights, once that has started and before its first page.
import { readFileSync } from "node:fs";
import { part, replace } from "../browsertime/browsertime.mjs";

const { Firefox } = await part("firefox/webdriver/firefox.js");

// Has the script `name` run with the argument that `argumentOf` makes of Browsertime's options; where that makes none,
// the script does not run. The script that was asked for last runs first.
export function runOnceStarted(name, argumentOf) {
  const script = readFileSync(new URL(`${name}.js`, import.meta.url), "utf8");
  replace(
    Firefox,
    "afterBrowserStart",
    (original) =>
      async function (runner) {
        const argument = argumentOf(this.options);
        if (argument) await runner.runPrivilegedScript(script, name, argument);
        return original.call(this, runner);
      },
  );
}
