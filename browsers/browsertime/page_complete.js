// Whether the page has finished, asked by Browsertime again and again: it is loaded, and no resource
// has ended for a while. Unlike Browsertime's own check of inactivity it leaves Resource Timing alone.
return (function (quiet) {
  // The navigation has not begun to show: this is still the empty page before.
  if (location.protocol === "data:") return false;
  const [navigation] = performance.getEntriesByType("navigation");
  if (!navigation || navigation.loadEventEnd === 0) return false;
  const ends = performance.getEntriesByType("resource").map((resource) => resource.responseEnd);
  const now = performance.now();
  // A page that never stops asking is given up on after a while.
  const patience = 5 * quiet;
  return now - Math.max(navigation.loadEventEnd, ...ends) > quiet || now - navigation.loadEventEnd > patience;
})(arguments[arguments.length - 1]);
