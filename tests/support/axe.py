"""Pages are held to axe-core's rules in the packaged browser, as wide as a phone and a screen, light and dark.

A test of another page is one line: `assert accessible(browser, url) == []`. It needs the mark `needs_axe`.
"""

from itertools import product

from base.places import cache_dir
from support.browser import Browser

# As the set-up installs it (package.json).
AXE = cache_dir() / "node" / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS_PX = (390, 1400)
SCHEMES = ("light", "dark")
# What is folded is looked at, too; of a table three rows, since the others are like them.
CHECK = """
for (const row of document.querySelectorAll("tbody tr:nth-child(n + 4)")) row.remove();
for (const part of document.querySelectorAll("details")) part.open = true;
const found = await axe.run(document, {resultTypes: ["violations"]});
return found.violations.flatMap((rule) => rule.nodes.map((node) =>
  `${rule.id}: ${node.target.join(" ")}: ${node.failureSummary.replace(/\\s+/g, " ")}`));
"""


def accessible(browser: Browser, url: str) -> list[str]:
    """What axe-core finds fault with in the page at `url`, once for each width and colour scheme."""
    violations = []
    script = AXE.read_text()
    for width, scheme in product(WIDTHS_PX, SCHEMES):
        browser.narrow(width)
        browser.prefer(scheme)
        browser.open(url)
        browser.run(script)
        violations += [f"{width} px, {scheme}: {fault}" for fault in browser.eventually(CHECK)]
        too_wide = browser.run("return document.documentElement.scrollWidth - innerWidth")
        violations += [f"{width} px, {scheme}: the page is {too_wide} px wider"] if too_wide > 0 else []
    return violations
