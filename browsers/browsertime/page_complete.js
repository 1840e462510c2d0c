// For how many ms the page cannot have finished yet, 0 when it has: it is loaded, and no resource has ended for a
// while; and for how many ms it has been so, null when it is not loaded. Unlike Browsertime's own check of inactivity it
// leaves Resource Timing alone.
return (function (poll, quiet) {
  // The navigation has not begun to show: this is still the empty page before.
  if (location.protocol === "data:") return [poll, null];
  const [navigation] = performance.getEntriesByType("navigation");
  if (!navigation || navigation.loadEventEnd === 0) return [poll, null];
  const ends = performance.getEntriesByType("resource").map((resource) => resource.responseEnd);
  // A page that never stops asking is given up on after a while.
  const patience = 5 * quiet;
  const last = Math.max(navigation.loadEventEnd, ...ends);
  const end = Math.min(last + quiet, navigation.loadEventEnd + patience);
  const now = performance.now();
  // A timer may be early by a part of a millisecond.
  return [Math.ceil(Math.max(end - now, 0)), now - last];
})(...arguments);
