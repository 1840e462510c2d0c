// For how many ms the page cannot have finished yet, 0 when it may have: it is loaded, and no resource has ended for a
// while, or for so long that it is given up on; for how many ms no resource has ended, null when it is not loaded; and
// after how many ms it is given up on, 0 when it is. A response under way is not in Resource Timing: `quiet.mjs` asks
// the browser. Unlike Browsertime's own check of inactivity it leaves Resource Timing alone.
return (function (poll, quiet) {
  // The navigation has not begun to show: this is still the empty page before.
  if (location.protocol === "data:") return [poll, null, null];
  const [navigation] = performance.getEntriesByType("navigation");
  if (!navigation || navigation.loadEventEnd === 0) return [poll, null, null];
  const ends = performance.getEntriesByType("resource").map((resource) => resource.responseEnd);
  // A page that never stops asking, or gets no answer, is given up on after a while.
  const last = Math.max(navigation.loadEventEnd, ...ends);
  const limit = navigation.loadEventEnd + 5 * quiet;
  const now = performance.now();
  // A timer may be early by a part of a millisecond.
  const until = (time) => Math.ceil(Math.max(time - now, 0));
  return [until(Math.min(last + quiet, limit)), now - last, until(limit)];
})(...arguments);
