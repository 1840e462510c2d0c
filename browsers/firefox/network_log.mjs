// Loaded into Browsertime's Node before Browsertime itself: Firefox notes each request of its network stack, its own
// included, in requests.jsonl of the results, from before the first page on.
import { join } from "node:path";
import { runOnceStarted } from "./privileged_script.mjs";

export const logOf = (options) => join(options.resultDir, "requests.jsonl");

runOnceStarted("note_requests", logOf);
