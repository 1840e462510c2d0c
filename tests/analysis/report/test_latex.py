"""Tables as LaTeX: special characters and headings; all tables compile and fit the document classes that papers use."""

import re
import subprocess
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from support.known_campaigns import write
from support.reports import tables_of_report

from analysis import hypotheses
from analysis.analyses import analyse
from analysis.report.latex import escaped, family_latex, latex
from analysis.report.section import ReportTable
from analysis.report.write import workers
from analysis.runs import load

DOCUMENTS = {
    "article": r"\documentclass{article}\usepackage{array,booktabs,longtable,pdflscape}",
    "acmart": r"\documentclass[sigconf,nonacm]{acmart}\title{T}\author{A}\affiliation{\country{C}}",
    "IEEEtran": r"\documentclass[conference]{IEEEtran}\usepackage{booktabs}",
}
TWO_COLUMNS = ("acmart", "IEEEtran")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> list[ReportTable]:
    folder = tmp_path_factory.mktemp("campaign")
    write(folder, "losses")
    with workers() as pool:
        findings = analyse(load(folder), hypotheses.load(), pool)
    return tables_of_report(findings)


def test_a_minus_is_one_of_mathematics_and_a_hyphen_stays_one() -> None:
    assert escaped("-1.5 % to -0.2 %") == r"$-$1.5 \% to $-$0.2 \%"
    assert escaped("s-03, 2-1, 3e-05, x_y") == r"s-03, 2-1, 3e-05, x\_\allowbreak{}y"


def test_a_family_table_has_the_declared_hypotheses_alone() -> None:
    texts = pd.DataFrame(
        [
            ("QUIC", "TCP+", "DSL", "SI", "-6.1 %", "faster"),
            ("QUIC", "TCP", "DSL", "SI", "-6.0 %", "faster"),
            ("QUIC", "TCP+", "DSL", "FVC", "-5.0 %", "faster"),
        ],
        columns=["protocol", "against", "network", "metric", "change", "verdict"],
    )
    declared = hypotheses.load().restricted_to(("tcp", "tcp+", "quic"), ("fvc", "si", "plt"))
    text = family_latex(ReportTable("confirmatory", "Declared", texts, texts), declared)
    assert text is not None and text.count("DSL") == 1 and "$-$6.1" in text
    assert r"\begin{table*}" in text and "longtable" not in text
    assert family_latex(ReportTable("drift", "Drift", texts, texts), declared) is None


def test_a_family_table_has_intervals_of_any_confidence() -> None:
    row = {"protocol": "QUIC", "against": "TCP+", "network": "DSL", "metric": "SI", "90 % interval": "-7.0 % to -5.2 %"}
    declared = hypotheses.load().restricted_to(("tcp+", "quic"), ("si",))
    text = family_latex(
        ReportTable("confirmatory", "", pd.DataFrame(), pd.DataFrame([row])), replace(declared, confidence=0.9)
    )
    assert text is not None and r"$-$7.0 \% to $-$5.2 \%" in text


def test_a_long_table_goes_over_pages_and_a_wide_one_stands_across() -> None:
    texts = pd.DataFrame({f"column {place}": ["0123456789"] * 60 for place in range(12)})
    text = latex(ReportTable("all", "All", texts, texts))
    assert text.index(r"\begin{landscape}") < text.index(r"\begin{longtable}") < text.index(r"\endhead")


@pytest.mark.slow
@pytest.mark.needs_tex
@pytest.mark.parametrize("document", DOCUMENTS)
def test_tables_compile_and_fit(document: str, tables: list[ReportTable], tmp_path: Path) -> None:
    declared = hypotheses.load().restricted_to(("tcp", "tcp+", "quic"), ("fvc", "si", "plt"))
    parts = [part for table in tables if (part := family_latex(table, declared))]
    assert len(parts) >= 5
    if document not in TWO_COLUMNS:
        parts += [latex(table) for table in tables]
    body = "\n\n\\clearpage\n".join(parts)
    title = "\\maketitle" if document == "acmart" else ""
    text = f"{DOCUMENTS[document]}\n\\begin{{document}}\n{title}\n{body}\n\\end{{document}}\n"
    (tmp_path / "all.tex").write_text(text)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, errors="replace")
    assert done.returncode == 0, done.stdout[-3000:]
    log = (tmp_path / "all.log").read_text(errors="replace")
    # Less than a point is invisible.
    widths = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide", log)]
    assert [points for points in widths if points >= 1] == []
