// Whether the page may have finished, as three numbers of ms:
// - how long it will take until the page can have finished at the earliest; 0 if it may have. It may have finished when
//   it is loaded, and no resource has ended for `quiet` ms, or when its patience (the third number) is over.
// - for how long no resource has ended; null if the page is not loaded.
// - for how much longer the page is waited for; 0 if it is given up on.
// Resource Timing does not contain responses that are under way, so `quiet.mjs` asks the browser for these. Unlike
// Browsertime's own check of inactivity, this does not change Resource Timing.
return (function (poll, quiet) {
  // This is still the empty page from before the navigation.
  if (location.protocol === "data:") return [poll, null, null];
  const [navigation] = performance.getEntriesByType("navigation");
  if (!navigation || navigation.loadEventEnd === 0) return [poll, null, null];
  const ends = performance.getEntriesByType("resource").map((resource) => resource.responseEnd);
  // A page that never stops sending requests, or waits for an answer in vain, is given up on after a while.
  const last = Math.max(navigation.loadEventEnd, ...ends);
  const limit = navigation.loadEventEnd + 5 * quiet;
  const now = performance.now();
  // A timer may fire a part of a millisecond early, so round up.
  const until = (time) => Math.ceil(Math.max(time - now, 0));
  return [until(Math.min(last + quiet, limit)), now - last, until(limit)];
})(...arguments);
