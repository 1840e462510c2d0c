"""Studies beside the campaign of pages, on the same replay, shells and gates: a folder each, and this list of them."""

from studies import grid, packets, states

# What a report asks of a campaign's folder, in the order of the page.
SECTIONS = (grid.section.section, states.section.section, packets.section.section)
