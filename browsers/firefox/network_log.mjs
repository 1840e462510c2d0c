// Loaded into Browsertime's Node before Browsertime itself: Firefox notes each request of its network stack, its own
// included, in REQUESTS of the results, from before the first page on.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { part, replace } from "../browsertime/browsertime.mjs";

const REQUESTS = "requests.jsonl";
const NOTE_REQUESTS = readFileSync(new URL("note_requests.js", import.meta.url), "utf8");

const { Firefox } = await part("firefox/webdriver/firefox.js");

replace(
  Firefox,
  "afterBrowserStart",
  (original) =>
    async function (runner) {
      await runner.runPrivilegedScript(NOTE_REQUESTS, "note_requests", join(this.options.resultDir, REQUESTS));
      return original.call(this, runner);
    },
);
