// Makes parts that scroll reachable by keyboard: code with long lines, and wide tables. The theme removes this from
// code when its width changes, and puts a wrapper around tables when the page is loaded, so all changes are observed.
const scrolling = ".md-typeset__scrollwrap, .md-typeset pre > code";
const makeReachable = () => {
  for (const part of document.querySelectorAll(scrolling)) {
    if (part.tabIndex < 0) part.tabIndex = 0;
  }
};
const changes = { childList: true, subtree: true, attributes: true, attributeFilter: ["tabindex"] };
new MutationObserver(makeReachable).observe(document.body, changes);
makeReachable();
