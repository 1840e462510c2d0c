// Loaded into Browsertime's Node before Browsertime itself: counts the requests that are under way, from the log that
// Firefox writes of its network stack (`note_requests.js`).
import { readFile } from "node:fs/promises";
import { part } from "../browsertime/browsertime.mjs";
import { logOf } from "./network_log.mjs";

const { SeleniumRunner } = await part("core/seleniumRunner");

SeleniumRunner.prototype.requestsUnderWay = async function () {
  const underWay = new Set();
  // Text after the last line break is an incomplete line, which is still being written.
  const lines = (await readFile(logOf(this.options), "utf8")).split("\n").slice(0, -1);
  for (const line of lines) {
    const { channel, url, awaited, by_browser, code } = JSON.parse(line);
    if (url !== undefined && awaited && !by_browser) underWay.add(channel);
    // Only the end of a request has a code.
    if (code !== undefined) underWay.delete(channel);
  }
  return underWay.size;
};
