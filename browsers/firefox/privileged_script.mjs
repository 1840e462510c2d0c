// For modules that are loaded into Browsertime's Node before Browsertime itself: runs a script of this folder in
// Firefox itself, with Firefox's rights, after Firefox has started and before its first page.
import { readFileSync } from "node:fs";
import { part, replace } from "../browsertime/browsertime.mjs";

const { Firefox } = await part("firefox/webdriver/firefox");

// Makes the script `name` run in Firefox. Its argument is the result of `argumentOf` for Browsertime's options; if that
// is nothing, the script does not run. If this is called for several scripts, the last one runs first.
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
