// Loaded into Browsertime's Node before Browsertime itself: how many requests are under way, by the log that ChromeDriver
// keeps of what DevTools say of the network. Browsertime makes its HAR of the same log, so what is read early is kept.
import { part, replace } from "../browsertime/browsertime.mjs";

const { SeleniumRunner } = await part("core/seleniumRunner.js");
const { getLogs } = SeleniumRunner.prototype;

const LOG = "performance";
// Requests that no page waits for, such as reports to servers, and those that may be under way for as long as the page is
// there: browsers take no more of a video than they need.
const NOT_AWAITED = new Set(["Ping", "CSPViolationReport", "Media", "EventSource"]);

let early = [];
const underWay = new Set();

SeleniumRunner.prototype.requestsUnderWay = async function () {
  const entries = await getLogs.call(this, LOG);
  early.push(...entries);
  for (const { message } of entries) follow(JSON.parse(message).message);
  return underWay.size;
};

replace(
  SeleniumRunner,
  "getLogs",
  (original) =>
    async function (type) {
      const entries = await original.call(this, type);
      if (type !== LOG) return entries;
      // Whoever takes the log ends a page with it, or begins one.
      const all = [...early, ...entries];
      early = [];
      underWay.clear();
      return all;
    },
);

function follow({ method, params }) {
  if (method === "Network.requestWillBeSent" && !NOT_AWAITED.has(params.type)) underWay.add(params.requestId);
  if (method === "Network.loadingFinished" || method === "Network.loadingFailed") underWay.delete(params.requestId);
}
