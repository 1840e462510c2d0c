// Parts that scroll can be reached by keys: long lines of code, from which the theme takes that again as their width
// changes, and wide tables, which it wraps when the page is loaded.
const scrolling = ".md-typeset__scrollwrap, .md-typeset pre > code";
const makeReachable = () => {
  for (const part of document.querySelectorAll(scrolling)) {
    if (part.tabIndex < 0) part.tabIndex = 0;
  }
};
const changes = { childList: true, subtree: true, attributes: true, attributeFilter: ["tabindex"] };
new MutationObserver(makeReachable).observe(document.body, changes);
makeReachable();
