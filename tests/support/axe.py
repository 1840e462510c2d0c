"""Checks pages against axe-core's rules in the packaged browser: as wide as a phone and a screen, light and dark.

A test of another page is one line: `assert accessible(browser, url) == []`; for a section of a study in the report see
`support.reports`. It needs the mark `needs_axe`.
"""

from collections.abc import Iterator

from base.places import cache_dir
from support.browser import Browser

# The path where set-up installs it (package.json).
AXE = cache_dir() / "node" / "node_modules" / "axe-core" / "axe.min.js"
# The widths in pixels, each with the colour scheme in which all rules are checked, and the other one. A scheme changes
# colours alone. So the other one is checked in this width, too, only if the width decides on colours, or on what shows.
LOOKS = ((390, "light", "dark"), (1400, "dark", "light"))
# Whether a style sheet of the page sets colours, or shows elements, by width, or cannot be read.
COLOURS_BY_WIDTH = """
  const colours = /color|background|opacity|display|visibility/;
  const by_width = rules => [...rules].some(rule =>
    /width/.test(rule.conditionText) && colours.test(rule.cssText) || by_width(rule.cssRules ?? []));
  try { return [...document.styleSheets].some(sheet => by_width(sheet.cssRules)); } catch { return true; }
"""
OF_COLOURS = '{runOnly: {type: "rule", values: ["color-contrast", "link-in-text-block"]}}'
# The check includes folded parts, and three rows of each table, since further rows are alike.
CHECK = """
for (const row of document.querySelectorAll("tbody tr:nth-child(n + 4)")) row.remove();
for (const part of document.querySelectorAll("details")) part.open = true;
const found = await axe.run(document, {resultTypes: ["violations"], ...RULES});
return found.violations.flatMap((rule) => rule.nodes.map((node) =>
  `${rule.id}: ${node.target.join(" ")}: ${node.failureSummary.replace(/\\s+/g, " ")}`));
"""

# The elements that reach beyond the right edge of the window, with their texts, unless an element within them does.
# Scrollable elements may.
WIDE = """
  const scrolls = element =>
    element && (getComputedStyle(element).overflowX !== "visible" || scrolls(element.parentElement));
  const right = element => {
    const box = element.getBoundingClientRect();
    return Math.max(box.right, scrolls(element) ? 0 : box.left + element.scrollWidth);
  };
  const wide = element => right(element) > innerWidth && !scrolls(element.parentElement);
  return [...document.body.querySelectorAll("*")]
    .filter(element => wide(element) && ![...element.children].some(wide))
    .map(element => element.outerHTML.slice(0, 200)).slice(0, 3).join("; ");
"""


def accessible(browser: Browser, url: str) -> list[str]:
    """The faults that axe-core finds in the page at `url`, as wide as a phone and a screen, light and dark."""
    violations = []
    for look, rules in _looks(browser):
        if not rules:  # (a page is laid out anew when the width changes)
            browser.open(url)
        violations += _faults(browser, look, rules)
    return violations


def accessible_now(browser: Browser) -> list[str]:
    """The faults in the page as it is now, for example a screen that is reached only within a session."""
    return [fault for look, rules in _looks(browser) for fault in _faults(browser, look, rules)]


def _looks(browser: Browser) -> Iterator[tuple[str, str]]:
    """Yield each width and colour scheme, after switching the browser to it, with the rules to check ("": all); finally
    restore the light scheme."""
    for width, scheme, other in LOOKS:
        browser.narrow(width)
        browser.prefer(scheme)
        yield f"{width} px, {scheme}", ""
        if browser.run(COLOURS_BY_WIDTH):
            browser.prefer(other)
            yield f"{width} px, {other}", OF_COLOURS
    browser.prefer("light")


def _faults(browser: Browser, look: str, rules: str) -> list[str]:
    if not browser.run("return 'axe' in window"):
        browser.run(AXE.read_text())
    faults = list(browser.eventually(CHECK.replace("...RULES", f"...{rules or '{}'}")))
    too_wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
    faults += [f"the page is {too_wide} px wider: {browser.run(WIDE)}"] if too_wide > 0 else []
    return [f"{look}: {fault}" for fault in faults]
