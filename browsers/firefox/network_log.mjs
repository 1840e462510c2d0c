// Loaded into Browsertime's Node before Browsertime itself: Firefox logs each request of its network stack, including
// its own ones, to requests.jsonl in the results. It begins before the first page.
import { join } from "node:path";
import { runOnceStarted } from "./privileged_script.mjs";

export const logOf = (options) => join(options.resultDir, "requests.jsonl");

runOnceStarted("note_requests", logOf);
