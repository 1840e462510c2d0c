"""The times of waiting for an object and of downloading it, as stacked bars (Kakhki et al., IMC 2017)."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.figures.style import COLUMN_INCHES, PAGE_INCHES, SMALL, figure_style, line_style
from analysis.text import label
from studies.grid.timings import MeanTimes


def draw(
    times: Mapping[tuple[str, str], MeanTimes], networks: Sequence[tuple[str, str]], protocols: Sequence[str]
) -> Figure:
    """Draw a bar for each protocol on each of `networks` (names and labels): the mean time until the first byte, and on
    top of it the mean time until the last byte, with the intervals of the wait and of the sum.

    `times`: a network's name and a protocol → the mean times.
    """
    width = 0.8 / len(protocols)
    with figure_style():
        size = COLUMN_INCHES if len(networks) < 3 else PAGE_INCHES
        figure = Figure(figsize=(size, 2.7), layout="constrained")
        axes = figure.subplots()
        for number, protocol in enumerate(protocols):
            color = line_style(protocol, protocols).color
            for place, (network, _) in enumerate(networks):
                if (network, protocol) not in times:
                    continue
                of_bar = times[network, protocol]
                wait_ms, receive_ms, both_ms = of_bar.wait_ms, of_bar.receive_ms, of_bar.both_ms
                at = place + (number - (len(protocols) - 1) / 2) * width
                axes.bar(at, wait_ms.mean, 0.85 * width, color=color)
                axes.bar(
                    at, receive_ms.mean, 0.85 * width, bottom=wait_ms.mean, facecolor="none", edgecolor=color,
                    hatch="////",
                )  # fmt: skip
                # The intervals stand side by side, since they would cover each other if the download is short.
                for aside, of_bar_ms in ((-0.2, wait_ms), (0.2, both_ms)):
                    if of_bar_ms.has_interval:
                        below, above = of_bar_ms.reaches
                        axes.errorbar(
                            at + aside * width, of_bar_ms.mean, [[below], [above]],
                            color="black", linewidth=0.8, capsize=2,
                        )  # fmt: skip
                axes.annotate(
                    f"{wait_ms.mean:.0f}\n+ {receive_ms.mean:.0f}\n({both_ms.runs})",
                    (at, both_ms.mean + both_ms.reaches[1]),
                    (0, 3),
                    textcoords="offset points",
                    ha="center",
                    fontsize=SMALL,
                )
        axes.margins(y=0.35)
        axes.set_xticks(range(len(networks)), [text for _, text in networks], fontsize=SMALL)
        axes.grid(axis="x", visible=False)
        axes.set_ylabel("time [ms]")
        keys = [Patch(facecolor=line_style(name, protocols).color, label=label(name)) for name in protocols]
        keys += [
            Patch(facecolor="0.5", label="wait"),
            Patch(facecolor="none", edgecolor="0.4", hatch="////", label="download"),
        ]
        axes.legend(handles=keys, fontsize=SMALL, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        return figure
