// Loaded into Browsertime's Node before Browsertime itself: counts the requests that are under way, from ChromeDriver's
// log of the network events of DevTools. Reading removes entries from this log, from which Browsertime later makes its
// HAR, so the entries that are read here are kept for Browsertime.
import { part, replace } from "../browsertime/browsertime.mjs";

const { SeleniumRunner } = await part("core/seleniumRunner");
const { getLogs } = SeleniumRunner.prototype;

const LOG = "performance";
// Kinds of requests that do not count. No page waits for some of them, such as reports to servers. Others may be under
// way as long as the page exists, such as for a video: browsers read only as much of it as they need.
const NOT_AWAITED = new Set(["Ping", "CSPViolationReport", "Media", "EventSource"]);

let early = [];
const underWay = new Set();
// The requests for the scripts with which workers begin. They belong to no loader, and their end is in another log, that
// of the worker. So they are under way until their response begins.
const ofWorkers = new Set();

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
      // Browsertime reads the log only at the end of a page or before a new one, so no request of a page is left.
      const all = [...early, ...entries];
      early = [];
      underWay.clear();
      ofWorkers.clear();
      return all;
    },
);

function follow({ method, params }) {
  if (method === "Network.requestWillBeSent" && !NOT_AWAITED.has(params.type)) {
    // Those with other schemes, such as blob, need no network.
    if (params.loaderId || /^https?:/.test(params.request.url)) underWay.add(params.requestId);
    if (!params.loaderId) ofWorkers.add(params.requestId);
  }
  if (method === "Network.responseReceivedExtraInfo" && ofWorkers.has(params.requestId)) underWay.delete(params.requestId);
  if (method === "Network.loadingFinished" || method === "Network.loadingFailed") underWay.delete(params.requestId);
}
