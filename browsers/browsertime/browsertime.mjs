// The Browsertime that Node is about to run, for modules that are loaded before it and change a part of it.
import { realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

// Where its own program is.
export const PROGRAM = pathToFileURL(realpathSync(process.argv[1]));

// A module of it, by its path in `lib`.
export function part(path) {
  return import(new URL(`../lib/${path}`, PROGRAM));
}

// Puts `make(original)` in the place of a method of a class. Throws when there is no such method.
export function replace(ofClass, method, make) {
  const original = ofClass?.prototype[method];
  if (typeof original !== "function") throw new Error("this is not the Browsertime that package-lock.json pins");
  ofClass.prototype[method] = make(original);
}
