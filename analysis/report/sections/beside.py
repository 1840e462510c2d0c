"""The paper's numbers beside the campaign's."""

import math

from analysis.figures import paper_beside
from analysis.findings import Findings
from analysis.report import alternatives
from analysis.report.section import ReportFigure, ReportTable, Section, text_table
from analysis.report.sections.contract import CampaignSection
from analysis.text import NOTHING, label, level, number, percent, signed_ms


def section(findings: Findings) -> Section:
    """The section of the paper's numbers."""
    data = findings["paper"]
    figures: tuple[ReportFigure, ...] = ()
    if data["ours"].notna().any():
        confidence = level(findings.declared.confidence)
        caption = f"The paper's numbers beside this campaign's, with their {confidence} intervals over sites."
        finding = alternatives.beside_the_paper(data)
        figures = (ReportFigure("beside_the_paper", caption, paper_beside.draw, (data,), finding),)
    agreement = paper_agreement(findings)
    return Section(
        "beside", "Beside the paper", figures=figures, tables=(beside_paper(findings),), values={"agreement": agreement}
    )


def paper_agreement(findings: Findings) -> str:
    """How many of the paper's numbers the campaign has, agrees with in sign, and repeats."""
    table = findings["paper"]
    available = table[table["ours"].notna()]
    if available.empty:
        return f"This campaign has none of the paper's {len(table)} numbers."
    signs, agrees = available["same_sign"], available["agrees"]
    return (
        f"Of the paper's {len(table)} numbers this campaign has {len(available)}. Of {(signs != '').sum()} with a sign "
        f"it agrees in {(signs == 'yes').sum()}; {(agrees == 'yes').sum()} of {(agrees != '').sum()} lie where a "
        f"repetition of the paper would, of which {level(findings.declared.confidence)} do by definition. Its "
        "browser, QUIC version and sites are not the paper's, so a difference is no error on either side."
    )


def beside_paper(findings: Findings) -> ReportTable:
    """Each of the paper's numbers and the campaign's."""
    forms = {"ratio": percent, "ms": signed_ms}

    def value(unit: str, *values: float) -> str:
        form = forms.get(unit, number)
        return " to ".join(map(form, values)) if math.isfinite(values[0]) else NOTHING

    def or_nothing(text: object) -> str:
        return str(text or NOTHING)

    columns = {
        "kind": ("number", lambda kind: kind.replace("_", " ")),
        "network": ("network", label),
        "compared": ("protocol", lambda name: label(name) or NOTHING),
        "reference": ("against", lambda name: label(name) or NOTHING),
        "site": ("site", lambda name: name or "all"),
        "metric": ("metric", lambda names: " ".join(map(label, names.split()))),
        "unit": ("unit", lambda unit: "" if unit == "ratio" else unit),
        ("unit", "value"): ("paper", value),
        ("unit", "ours"): ("here", value),
        ("unit", "ours_low", "ours_high"): (f"{level(findings.declared.confidence)} interval", value),
        "same_sign": ("same sign", or_nothing),
        "agrees": ("as a repetition", or_nothing),
        "chance": ("by chance", lambda chance: f"{100 * chance:.2g} %" if math.isfinite(chance) else NOTHING),
        "sites": ("sites here", or_nothing),
        ("missing", "note"): ("remark", lambda *remarks: "; ".join(filter(None, remarks))),
    }
    data = findings["paper"]
    return ReportTable("beside_the_paper", "The paper's numbers and this campaign's", data, text_table(data, columns))


SECTION = CampaignSection("beside", place=30, of=section)
