// Whether the page may have finished, as three numbers of ms:
// - the least time until the page may have finished; 0 if it may have finished already. It may have finished if it is
//   loaded and no resource has ended for `quiet` ms, or if the third number is 0.
// - the time for which no resource has ended; null if the page is not loaded.
// - the time for which we still wait for the page; 0 if we have given it up.
// Resource Timing does not contain responses that are under way, so `quiet.mjs` asks the browser for these. Unlike
// Browsertime's own check of inactivity, this does not change Resource Timing.
return (function (poll, quiet) {
  // This is still the empty page from before the navigation.
  if (location.protocol === "data:") return [poll, null, null];
  const [navigation] = performance.getEntriesByType("navigation");
  if (!navigation || navigation.loadEventEnd === 0) return [poll, null, null];
  const ends = performance.getEntriesByType("resource").map((resource) => resource.responseEnd);
  // After a while we give up a page that never stops sending requests, or that waits for an answer in vain.
  const last = Math.max(navigation.loadEventEnd, ...ends);
  const limit = navigation.loadEventEnd + 5 * quiet;
  const now = performance.now();
  // A timer may fire a part of a millisecond early, so round up.
  const until = (time) => Math.ceil(Math.max(time - now, 0));
  return [until(Math.min(last + quiet, limit)), now - last, until(limit)];
})(...arguments);
