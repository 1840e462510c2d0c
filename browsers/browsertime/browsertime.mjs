// Access to the Browsertime that Node is about to run, for modules that are loaded before Browsertime and change parts
// of it.
import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

// The URL of Browsertime's program, in the bundle that set-up makes (setup/bundle_browsertime.mjs).
export const PROGRAM = pathToFileURL(realpathSync(process.argv[1]));

// `part` returns the module of Browsertime that the program uses, by its path in `lib` without ".js".
export const { part } = await import(new URL("browsertime.mjs", PROGRAM));

// Replaces a method of a class by `make(original)`. Throws when there is no such method.
export function replace(ofClass, method, make) {
  const original = ofClass?.prototype[method];
  if (typeof original !== "function") throw new Error("this is not the Browsertime that package-lock.json pins");
  ofClass.prototype[method] = make(original);
}
