"""The campaign's folder: nothing is lost, duplicated or measured with other settings."""

import csv
import hashlib
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factories import ROW, rejected, with_metrics
from factories import campaign_document as document
from hypothesis import given
from hypothesis import strategies as st

from base.clock import now_iso
from base.errors import EyelevelError
from base.files import read_json
from base.places import PROJECT
from dataset import declaration as declarations
from dataset.reasons import Reason
from dataset.table import Run, columns, read_document, read_rows
from dataset.verdicts import VERDICTS, Verdict, add_verdict
from measure.campaign.results import changes, opened
from measure.instruments.contract import instrument_columns

RUN = Run("s", "lte", "tcp", 1)


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "runs.csv").open() as file:
        return list(csv.DictReader(file))


def test_a_measured_run_is_known_when_the_campaign_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path / "c", document()) as results:
        results.keep(rejected("film"))
        results.keep(replace(ROW, attempt=2))
    with opened(tmp_path / "c", document()) as results:
        assert results.is_valid(RUN)
        assert results.attempts(RUN) == 2
        assert not results.is_valid(replace(RUN, number=2))
    assert [row["valid"] for row in rows(tmp_path / "c")] == ["false", "true"]


def test_a_row_has_the_promised_columns() -> None:
    promised = (
        "site,network,protocol,run,valid,reason,fvc,lvc,vc85,si,plt,requests,served,missed,started_at,seconds,folder"
    )
    assert set(promised.split(",")) <= set(columns())


@pytest.mark.slow
@given(st.data())
def test_a_line_cut_short_anywhere_never_counts(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("campaigns") / "c"
    with opened(folder, document()) as results:
        results.keep(ROW)
        whole = (folder / "runs.csv").read_bytes()
        results.keep(replace(ROW, run=2))
    line = (folder / "runs.csv").read_bytes()[len(whole) :]
    cut = data.draw(st.integers(0, len(line) - 1))
    (folder / "runs.csv").write_bytes(whole + line[:cut])
    with opened(folder, document()) as results:
        assert results.is_valid(RUN)
        assert not results.attempts(replace(RUN, number=2))
        results.keep(replace(ROW, run=2))
    assert [row["run"] for row in rows(folder)] == ["1", "2"]


def test_a_row_that_does_not_fit_on_the_disk_leaves_no_half_line(tmp_path: Path) -> None:
    script = """
import resource, signal, sys
from pathlib import Path
from dataclasses import replace
from factories import ROW, campaign_document as document
from measure.campaign.results import opened
with opened(Path(sys.argv[1]), document()) as results:
    results.keep(ROW)
    size = (results.folder / "runs.csv").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, size + 20))
    try:
        results.keep(replace(ROW, run=2))
    except OSError:
        print("told")
"""
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}"}
    command = [sys.executable, "-c", script, str(tmp_path / "c")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "told\n"
    assert [row["run"] for row in rows(tmp_path / "c")] == ["1"]
    with opened(tmp_path / "c", document()) as results:
        assert not results.attempts(replace(RUN, number=2))


def test_a_reason_of_any_text_stays_one_line(tmp_path: Path) -> None:
    with opened(tmp_path / "c", document()) as results:
        results.keep(with_metrics(rejected('gate: said "no",\nthen\r\nnothing'), plt=None))
    assert len((tmp_path / "c" / "runs.csv").read_text().splitlines()) == 2
    (row,) = rows(tmp_path / "c")
    assert row["reason"] == 'gate: said "no", then nothing'
    assert row["plt"] == ""


def test_a_reason_with_what_no_file_and_no_terminal_can_take_is_kept_with_escapes(tmp_path: Path) -> None:
    text = "an alert: \ud800, \x1b]0;title\x07, \x9b31m, \0, \u202e, \u00fc"
    escaped = r"an alert: \ud800, \x1b]0;title\x07, \x9b31m, \x00, \u202e, \u00fc".replace(r"\u00fc", "\u00fc")
    with opened(tmp_path / "c", document()) as results:
        results.keep(rejected(f"gate: {text}"))
        results.decide(Verdict.of(results.rows[0], Reason("gate\x1b", text), by="review"))
    with opened(tmp_path / "c", document()) as results:
        assert [str(row.reason) for row in results.rows] == [rf"gate\x1b: {escaped}"]
    assert rows(tmp_path / "c")[0]["reason"].isprintable()
    # Somebody else's results, from a program that did not escape control characters: reading escapes them.
    table = tmp_path / "c" / "runs.csv"
    table.write_text(table.read_text().replace(r"\x1b]0", "\x1b]0"))
    assert str(read_rows(tmp_path / "c")[0].reason) == rf"gate\x1b: {escaped}"


def test_a_verdict_changes_the_line_of_its_attempt_alone(tmp_path: Path) -> None:
    table = tmp_path / "c" / "runs.csv"
    with opened(tmp_path / "c", document()) as results:
        attempts = [replace(ROW, run=n, folder=f"runs/s/lte/tcp/{n}-1") for n in (1, 2, 3)]
        results.keep(*attempts)
        # The current version would not write this.
        table.write_text(table.read_text().replace(",1234.5,", ",1234.50,"))
        before = table.read_text().splitlines()
        results.decide(*(Verdict.of(row, Reason("gate", "it is wrong"), by="review") for row in attempts[1:]))
        after = table.read_text().splitlines()
        assert [row.valid for row in results.rows] == [True, False, False]
        assert (results.is_valid(RUN), results.is_valid(replace(RUN, number=2))) == (True, False)
    assert after[:2] == before[:2]
    assert [row["reason"] for row in rows(tmp_path / "c")] == ["", "gate: it is wrong", "gate: it is wrong"]
    with opened(tmp_path / "c", document()) as results:
        assert table.read_text().splitlines() == after
        results.decide(Verdict.of(results.rows[1], Reason("gate", "it is right"), by="review", valid=True))
    assert [row["valid"] for row in rows(tmp_path / "c")] == ["true", "true", "false"]


def test_a_table_that_lost_lines_is_written_anew(tmp_path: Path) -> None:
    table = tmp_path / "c" / "runs.csv"
    with opened(tmp_path / "c", document()) as results:
        results.keep(*[replace(ROW, run=n, folder=f"runs/s/lte/tcp/{n}-1") for n in (1, 2)])
        table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))
        results.decide(Verdict.of(results.rows[0], Reason("gate", "it is wrong"), by="review"))
    assert [(row["run"], row["valid"]) for row in rows(tmp_path / "c")] == [("1", "false"), ("2", "true")]


def test_verdicts_are_read_when_there_are_new_ones(tmp_path: Path) -> None:
    file = tmp_path / "c" / VERDICTS
    with opened(tmp_path / "c", document()) as kept:
        kept.keep(ROW)
        kept.follow_verdicts()
        assert kept.is_valid(RUN)
        # Another process may do this at any time.
        add_verdict(tmp_path / "c", Verdict.of(ROW, Reason("gate", "it is wrong"), by="review"))
        kept.follow_verdicts()
        assert not kept.is_valid(RUN)
        # Reading this would be noticed.
        status = file.stat()
        file.write_bytes(b"?" * (status.st_size - 1) + b"\n")
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
        kept.follow_verdicts()
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
        with pytest.raises(EyelevelError, match="is broken"):
            kept.follow_verdicts()


def test_an_interrupted_attempt_leaves_nothing_to_the_next(tmp_path: Path) -> None:
    with opened(tmp_path / "c", document()) as results:
        (results.empty_run_folder(RUN, 1) / "film.mp4").touch()
        assert list(results.empty_run_folder(RUN, 1).iterdir()) == []


def test_changed_settings_are_refused_with_the_difference(tmp_path: Path) -> None:
    with opened(tmp_path / "c", document()):
        pass
    changed = document(seed=2, networks={"lte": {"up_mbps": 3}})
    message = r"networks/lte/up_mbps was 2.8, is 3; seed was 1, is 2"
    with pytest.raises(EyelevelError, match=message), opened(tmp_path / "c", changed):
        pass
    with opened(tmp_path / "c", document()):
        pass


@pytest.mark.parametrize(
    "more",
    [
        {"runs": 5},
        {"networks": {"lte": {"up_mbps": 2.8}, "dsl": {"up_mbps": 5}}},
        {"sites": {"s": {"sha256": "0"}, "t": {"sha256": "1"}}},
        {"protocols": {"tcp": {"transport": "tcp"}, "quic": {"transport": "quic"}}},
    ],
)
def test_more_of_the_same_is_allowed_and_less_is_not(more: dict[str, Any]) -> None:
    assert changes(document(), document(**more)) == []
    assert changes(document(**more), document()) != []


def test_what_is_gone_is_told_by_its_name() -> None:
    assert changes(document(), document(networks={"dsl": {"up_mbps": 5}})) == ["settings/networks include lte"]


def test_another_browser_is_refused() -> None:
    newer = document(versions={"chromium": "2"})
    assert changes(document(), newer) == ["versions/chromium was 1, is 2"]


def test_campaigns_that_do_not_tell_with_what_their_network_kept_time_are_roots() -> None:
    """At that time, only root could measure."""
    of_root = document(versions={"chromium": "1", "timekeeping": "real-time priority, kernel stamps"})
    assert changes(document(), of_root) == []
    of_a_user = document(versions={"chromium": "1", "timekeeping": "ordinary priority"})
    assert changes(document(), of_a_user) == [
        "versions/timekeeping was real-time priority, kernel stamps, is ordinary priority"
    ]
    assert changes(document(), replace(document(), machine={"host": "there"})) == []


def test_a_campaign_has_the_shells_that_it_was_begun_with() -> None:
    others = document()
    others = replace(others, settings=replace(others.settings, shells="mahimahi"))
    assert changes(document(), others) == ["settings/shells was ours, is mahimahi"]
    assert changes(others, document()) == ["settings/shells was mahimahi, is ours"]
    assert changes(others, others) == []
    assert (document().settings.shells, others.settings.shells) == ("ours", "mahimahi")


def test_one_process_at_a_time(tmp_path: Path) -> None:
    script = "import sys; from pathlib import Path; from measure.campaign.results import opened\n"
    script += "from dataset.settings import CampaignSettings\nfrom dataset.table import CampaignDocument\n"
    script += f"with opened(Path({str(tmp_path / 'c')!r}), {document()!r}): print('in')"
    with opened(tmp_path / "c", document()):
        second = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "another process is measuring the campaign c" in second.stderr
    assert "in" not in second.stdout.split()


def test_columns_of_another_version_are_kept_when_the_campaign_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    with opened(folder, document()) as results:
        results.keep(ROW)
        results.keep(rejected("error_page: no", run=2))
    table = [line.split(",") for line in (folder / "runs.csv").read_text().splitlines()]
    si = table[0].index("si")
    # Another version had no Speed Index, but another metric of that name.
    lines = [[*cells[:si], *cells[si + 1 :], cell] for cells, cell in zip(table, ("area", "812.5", ""), strict=True)]
    (folder / "runs.csv").write_text("".join(",".join(cells) + "\n" for cells in lines))
    first = read_rows(folder)[0]
    assert (first.metrics["si"], first.metrics["plt"], first.readings["area"]) == (None, 1234.5, 812.5)
    with opened(folder, document()) as results:
        assert results.is_valid(RUN)
        results.keep(replace(ROW, run=3))
    assert (folder / "runs.csv").read_text().splitlines()[0] == ",".join((*columns(), *instrument_columns(), "area"))
    assert [(row["run"], row["si"], row["area"]) for row in rows(folder)] == [
        ("1", "", "812.5"),
        ("2", "", ""),
        ("3", "650.5", ""),
    ]


def test_a_table_without_a_column_that_all_need_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "runs.csv").write_text("site,network\n")
    with pytest.raises(EyelevelError, match="lacks the columns protocol, run, attempt, valid, reason, requests"):
        read_rows(tmp_path)


def begun(folder: Path, hypotheses: str = "", **keys: Any) -> dict[str, Any]:
    """The `campaign.json` of a campaign in `folder`, begun or resumed with `hypotheses` and other `keys`."""
    with opened(folder, replace(document(), **keys), hypotheses):
        return read_json(folder / "campaign.json")


def backdate(folder: Path, year: int) -> None:
    """Change the dates of today's declarations of the campaign in `folder` to the same day of this `year`."""
    file = folder / "campaign.json"
    file.write_text(file.read_text().replace(f'"{now_iso()[:4]}-', f'"{year}-'))


def test_hypotheses_are_kept_with_their_hash_and_time_before_the_first_run(tmp_path: Path) -> None:
    text, before = "significant_p = 0.01 # \u00bd\r\n", now_iso()
    declared_at = begun(tmp_path / "c", text)["hypotheses"]["declared_at"]
    assert before <= declared_at <= now_iso()
    backdate(tmp_path / "c", 2001)
    declared_at = declared_at.replace(declared_at[:4], "2001")
    first = read_json(tmp_path / "c" / "campaign.json")
    assert (tmp_path / "c" / "hypotheses.toml").read_bytes() == text.encode()
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    assert first["hypotheses"] == {"sha256": sha256, "declared_at": declared_at, "runs": [document().settings.runs]}
    assert begun(tmp_path / "c", text) == first
    assert begun(tmp_path / "c") == first, "what is not said stays"
    document_of_more = document(runs=5)
    with opened(tmp_path / "c", document_of_more, text):
        pass
    declared = read_json(tmp_path / "c" / "campaign.json")["hypotheses"]
    assert declared == {**first["hypotheses"], "runs": [5]}, "nothing was measured yet"


def test_what_is_added_after_the_first_run_is_kept_with_its_time(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    begun(folder, "one")
    backdate(folder, 2001)
    with opened(folder, document(), "one") as campaign:
        campaign.keep(ROW)
    networks = {"lte": {"up_mbps": 2.8}, "dsl": {"up_mbps": 5}}
    begun(folder, "one", settings=document(networks=networks).settings)
    backdate(folder, 2002)
    more = document(networks=networks, runs=5, sites={"s": {"sha256": "0"}, "t": {"sha256": "1"}})
    begun(folder, "one", settings=more.settings)
    begun(folder, "one", settings=replace(more, settings=replace(more.settings, runs=9)).settings)
    kept = read_document(folder)
    assert kept is not None
    declared = declarations.declaration_of(kept, folder)
    assert declared.declared_at.startswith("2001-")
    assert declared.networks.keys() == {"dsl"} and declared.networks["dsl"].startswith("2002-")
    assert declared.sites.keys() == {"t"} and declared.sites["t"] > declared.networks["dsl"]
    assert not declared.protocols
    assert declared.runs == (document().settings.runs, 5, 9)


def test_a_broken_declaration_is_told_by_its_place(tmp_path: Path) -> None:
    broken = replace(document(), hypotheses={"runs": "many"})
    with pytest.raises(EyelevelError, match=r"campaign.json is broken: hypotheses: runs"):
        declarations.declaration_of(broken, tmp_path)


def test_other_hypotheses_are_refused_in_one_line_that_says_how_to_resume(tmp_path: Path) -> None:
    first = begun(tmp_path / "c", "one")
    with pytest.raises(EyelevelError) as raised:
        begun(tmp_path / "c", "two")
    assert str(raised.value) == (
        f"the campaign c was begun with other hypotheses, those in {tmp_path / 'c' / 'hypotheses.toml'}: resume it "
        "without --hypotheses (HYPOTHESES), or use another campaign name; a report can test others post hoc"
    )
    assert (tmp_path / "c" / "hypotheses.toml").read_text() == "one"
    assert read_json(tmp_path / "c" / "campaign.json") == first


def test_a_campaign_without_hypotheses_goes_on_and_declares_none_later(tmp_path: Path) -> None:
    assert "hypotheses" not in begun(tmp_path / "old")
    assert "hypotheses" not in begun(tmp_path / "old")
    with pytest.raises(EyelevelError, match="was begun with other hypotheses, none: resume it without"):
        begun(tmp_path / "old", "one")
    assert not (tmp_path / "old" / "hypotheses.toml").exists()


def test_lost_hypotheses_can_be_restored_by_the_same_text_alone(tmp_path: Path) -> None:
    begun(tmp_path / "c", "one")
    (tmp_path / "c" / "hypotheses.toml").unlink()
    kept = read_document(tmp_path / "c")
    assert kept is not None
    with pytest.raises(EyelevelError, match="restore it, or give the hypotheses with --hypotheses"):
        declarations.kept_hypotheses(tmp_path / "c", kept)
    begun(tmp_path / "c", "one")
    assert declarations.kept_hypotheses(tmp_path / "c", kept) == "one"


def test_hypotheses_survive_a_stop_before_the_document_was_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        begun(tmp_path / "c", "one", machine={"host": object()})
    assert (tmp_path / "c" / "hypotheses.toml").read_text() == "one"
    # The campaign did not begin, so nothing was declared.
    assert begun(tmp_path / "c", "two")["hypotheses"]["sha256"] == hashlib.sha256(b"two").hexdigest()
    assert (tmp_path / "c" / "hypotheses.toml").read_text() == "two"


def test_an_old_campaign_gets_the_facts_of_its_sites_and_keeps_those_it_has(tmp_path: Path) -> None:
    assert "site_facts" not in begun(tmp_path / "c")
    assert begun(tmp_path / "c", site_facts={"s": {"bytes": 1}})["site_facts"] == {"s": {"bytes": 1}}
    facts = {"s": {"bytes": 2}, "t": {"bytes": 3}}
    more = replace(document(sites={"s": {"sha256": "0"}, "t": {"sha256": "1"}}), site_facts=facts)
    with opened(tmp_path / "c", more):
        pass
    assert read_json(tmp_path / "c" / "campaign.json")["site_facts"] == {"s": {"bytes": 1}, "t": {"bytes": 3}}


def test_a_campaign_keeps_the_films_that_it_was_resumed_with_and_the_keys_that_nobody_knows(tmp_path: Path) -> None:
    begun = replace(document(), films={"kept": "all"}, further={"note": "of another program"})
    for films in ({"kept": "all"}, {"kept": "none"}):
        with opened(tmp_path, replace(begun, films=films)):
            pass
    resumed = read_document(tmp_path)
    assert resumed and resumed.films == {"kept": "none"} and resumed.further == begun.further


def test_a_campaign_that_nothing_is_new_of_is_not_written_again_on_another_machine(tmp_path: Path) -> None:
    with opened(tmp_path, document()):
        pass
    with opened(tmp_path, replace(document(), machine={"host": "there"})):
        pass
    assert (resumed := read_document(tmp_path)) and resumed.machine == {"host": "here"}
