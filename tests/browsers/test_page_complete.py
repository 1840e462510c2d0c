"""When a page has finished, and how Browsertime is made to query the page for this, and for its data at that time."""

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from base.places import tool
from browsers.browsertime.configuration import PAGE_COMPLETE, POLL_MS
from browsers.browsertime.run import SCRIPTS

PROGRAM = tool("browsertime-bundle").resolve()
QUIET_MS = 3000

# Prints the answer of the page's script for these times of the page: now, the end of its load event, and the ends of
# its resources.
ASK = """
const [check, address, now, load, ends, poll, quiet] = JSON.parse(process.argv[1]);
globalThis.location = new URL(address);
globalThis.performance = {
  now: () => now,
  getEntriesByType: (type) =>
    type === "navigation" ? [{ loadEventEnd: load }] : ends.map((responseEnd) => ({ responseEnd })),
};
console.log(JSON.stringify(new Function(check)(poll, quiet)));
"""
# A driver whose page gives the answers in `answers`, one after another, and then says that it has finished.
WAIT = """
const { part } = await import(BROWSERTIME);
const { SeleniumRunner } = await part("core/seleniumRunner");
const [answers, limit, underWay] = [ANSWERS, LIMIT, UNDER_WAY];
const given = [];
const runner = {
  options: {
    pageCompleteWaitTime: 500,
    pageCompleteCheckPollTimeout: 200,
    quietSignTime: 100,
    timeouts: { pageCompleteCheck: limit },
  },
  driver: {
    executeScript: async (...asked) => {
      given.push([performance.now(), ...asked]);
      const answer = given.length > answers.length ? [0, 500, 2000] : answers[given.length - 1];
      if (typeof answer === "string") throw Object.assign(new Error(answer), { name: answer });
      return answer;
    },
  },
  requestsUnderWay: async () => underWay.shift() ?? 0,
};
let error = null;
const quiet = [];
process.on("quiet", () => quiet.push(given.length));
try {
  await SeleniumRunner.prototype._waitOnPageCompleteCheck.call(runner, "check");
} catch (one) {
  error = one.name;
}
console.log(JSON.stringify({ given, error, quiet }));
process.exit();
"""
# A page that evaluates the driver's scripts; if FAILS, the first one fails.
COLLECT = """
const { part } = await import(BROWSERTIME);
const { SeleniumRunner } = await part("core/seleniumRunner");
const { allScriptCategories, getScriptsForCategories } = await part("support/browserScript");
let clocks = 0;
const { now } = performance;
performance.now = () => { clocks += 1; return now.call(performance); };
const known = await getScriptsForCategories(await allScriptCategories());
const scripts = CATEGORIES ?? known;
let asked = 0;
const runner = Object.create(SeleniumRunner.prototype);
runner.options = { browser: "chrome", timeouts: { script: 1000 } };
runner.driver = {
  executeScript: async (script, ...given) => {
    asked += 1;
    if (asked === 1 && FAILS) throw new Error("no page");
    return JSON.parse(JSON.stringify(new Function(script)(...given) ?? null));
  },
};
const names = Object.fromEntries(Object.entries(scripts).map(([category, named]) => [category, Object.keys(named)]));
const results = CATEGORIES ? await runner.runScripts(scripts) : null;
console.log("\\n" + JSON.stringify({ names, results, asked, clocks }));
process.exit();
"""


def said(
    now_ms: float, load_ms: float = 400, ends_ms: tuple[float, ...] = (), address: str = "https://a.example"
) -> Any:
    """The page's three numbers, in ms: the least time until it may have finished, the time for which it has been quiet,
    and the time until it is given up."""
    question = [PAGE_COMPLETE.read_text(), address, now_ms, load_ms, ends_ms, POLL_MS, QUIET_MS]
    command: list[str | Path] = [tool("node"), "--eval", ASK, json.dumps(question)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def in_browsertime(tmp_path: Path, script: str, change: str, **values: Any) -> Any:
    """The last line, as JSON, that `script` prints when it runs in Browsertime's Node with one of our changes.

    Each name in `values` is replaced in `script` by its value.
    """
    for name, value in {"BROWSERTIME": (SCRIPTS / "browsertime.mjs").as_uri(), **values}.items():
        script = script.replace(name, json.dumps(value))
    file = tmp_path / "script.mjs"
    file.write_text(script)
    preloaded: list[str | Path] = ["--import", SCRIPTS / change, "--import", file]
    command: list[str | Path] = [tool("node"), *preloaded, PROGRAM, "--version"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    ("page", "remaining_ms", "quiet_ms", "patience_ms"),
    [
        pytest.param({"now_ms": 100, "address": "data:text/html,"}, POLL_MS, None, None, id="the empty page before"),
        pytest.param({"now_ms": 100, "load_ms": 0}, POLL_MS, None, None, id="not loaded"),
        pytest.param({"now_ms": 500}, 2900, 100, 14900, id="quiet since the load event"),
        pytest.param({"now_ms": 500.25}, 2900, 100.25, 14900, id="to the next millisecond, since a timer may be early"),
        pytest.param(
            {"now_ms": 2000, "ends_ms": (350, 1900.5, 700)}, 2901, 99.5, 13400, id="quiet since the last response"
        ),
        pytest.param({"now_ms": 15000, "ends_ms": (14000,)}, 400, 1000, 400, id="a page that never stops"),
        pytest.param({"now_ms": 15400, "ends_ms": (15300,)}, 0, 100, 0, id="given up on"),
        pytest.param({"now_ms": 3400}, 0, 3000, 12000, id="finished, if nothing is under way"),
        pytest.param({"now_ms": 9000, "ends_ms": (2000,)}, 0, 7000, 6400, id="finished for a while"),
    ],
)
def test_a_page_says_when_it_can_have_finished_at_the_earliest(
    page: dict[str, Any], remaining_ms: int, quiet_ms: float | None, patience_ms: int | None
) -> None:
    assert said(**page) == [remaining_ms, quiet_ms, patience_ms]


def pauses_ms(waited: Any) -> list[float]:
    """The times from each command to the next."""
    times_ms = [time_ms for time_ms, *_ in waited["given"]]
    return [later - earlier for earlier, later in pairwise(times_ms)]


def test_the_page_is_asked_when_it_can_have_finished_and_not_before(tmp_path: Path) -> None:
    waited = in_browsertime(tmp_path, WAIT, "quiet.mjs", UNDER_WAY=[], ANSWERS=[[300, 200], [60, 440]], LIMIT=60_000)
    assert waited["error"] is None
    assert [command for _, *command in waited["given"]] == 3 * [["check", 200, 500]]
    # Node's timers may fire a millisecond early.
    assert all(pause >= least - 1 for pause, least in zip(pauses_ms(waited), (300, 60), strict=True))


def test_a_page_with_requests_under_way_has_not_finished(tmp_path: Path) -> None:
    """The page is queried again at the earliest time at which it could have finished, or when it is given up."""
    answers = [[0, 500, 2000], [0, 1000, 300], [0, 1300, 150]]
    waited = in_browsertime(tmp_path, WAIT, "quiet.mjs", UNDER_WAY=[2, 1, 1], ANSWERS=answers, LIMIT=60_000)
    assert waited["error"] is None
    assert all(pause >= least - 1 for pause, least in zip(pauses_ms(waited), (500, 300, 150), strict=True))


def test_a_page_that_is_given_up_on_has_finished_whatever_is_under_way(tmp_path: Path) -> None:
    waited = in_browsertime(tmp_path, WAIT, "quiet.mjs", UNDER_WAY=[1], ANSWERS=[[0, 100, 0]], LIMIT=60_000)
    assert (waited["error"], len(waited["given"])) == (None, 1)


@pytest.mark.parametrize(
    ("answers", "questions", "pauses"),
    [
        pytest.param([[300, 200]], 1, (300,), id="when it is asked first"),
        pytest.param([[200, None], [480, 20], [400, 100]], 3, (100, 80, 400), id="asked once more for that"),
        pytest.param([[480, 20], [470, 30], [390, 110], [380, 120]], 3, (80, 70, 390, 380), id="later, and once"),
    ],
)
def test_a_page_that_has_been_quiet_for_a_while_is_told_of(
    tmp_path: Path, answers: list[Any], questions: int, pauses: tuple[float, ...]
) -> None:
    waited = in_browsertime(tmp_path, WAIT, "quiet.mjs", UNDER_WAY=[], ANSWERS=answers, LIMIT=60_000)
    assert waited["quiet"] == [questions]
    assert all(pause >= least - 1 for pause, least in zip(pauses_ms(waited), pauses, strict=True))


def test_a_page_that_says_what_it_likes_is_asked_no_more_often_than_others(tmp_path: Path) -> None:
    waited = in_browsertime(
        tmp_path, WAIT, "quiet.mjs", UNDER_WAY=[], ANSWERS=[None, 7, [-1, -1], [300, "x"], [1e15, 1e15]], LIMIT=60_000
    )
    assert waited["error"] is None
    least_ms = (200, 200, 200, 200, 500)
    assert all(pause >= least - 1 for pause, least in zip(pauses_ms(waited), least_ms, strict=True))


@pytest.mark.parametrize(
    "answers", [[[500, 500], [500, 500]], ["TimeoutError"]], ids=["asks without end", "does not answer"]
)
def test_a_page_that_does_not_finish_is_left_without_an_error_as_browsertime_does(
    tmp_path: Path, answers: list[Any]
) -> None:
    waited = in_browsertime(tmp_path, WAIT, "quiet.mjs", UNDER_WAY=[], ANSWERS=answers, LIMIT=200)
    assert waited["error"] is None
    assert len(waited["given"]) == 1


def test_a_page_that_breaks_is_an_error(tmp_path: Path) -> None:
    assert in_browsertime(tmp_path, WAIT, "quiet.mjs", UNDER_WAY=[], ANSWERS=["NoSuchWindowError"], LIMIT=60000)[
        "error"
    ]


def test_browsertime_does_not_run_its_benchmark_as_it_starts(tmp_path: Path) -> None:
    collected = in_browsertime(tmp_path, COLLECT, "page_scripts.mjs", CATEGORIES=None, FAILS=False)
    assert collected["clocks"] == 0
    assert {"pageTimings", "paintTiming", "loadEventEnd"} <= set(collected["names"]["timings"])


SCRIPTS_OF_A_PAGE = {
    "browser": {
        "cpuBenchmark": "(function() { throw 'benchmark' })()",
        "userAgent": "(function() { return 'a' })();\n",
    },
    "timings": {
        "broken": "(function() { return nonesuch.length; })();",
        "given": "(function(custom) { return [custom]; })(arguments[arguments.length - 1])",
        "nothing": "(function() { return undefined; })();",
        "zero": "(function() { return 0; })();",
    },
}


@pytest.mark.parametrize(("fails", "commands"), [(False, 1), (True, 5)])
def test_all_scripts_but_the_benchmark_are_run_at_once_if_that_is_possible(
    tmp_path: Path, fails: bool, commands: int
) -> None:
    categories = {
        category: {name: {"content": script, "requires": {}} for name, script in scripts.items() if name != "broken"}
        for category, scripts in SCRIPTS_OF_A_PAGE.items()
    }
    collected = in_browsertime(tmp_path, COLLECT, "page_scripts.mjs", CATEGORIES=categories, FAILS=fails)
    assert collected["results"] == {"browser": {"userAgent": "a"}, "timings": {"given": [None], "zero": 0}}
    assert collected["asked"] == commands


def test_a_script_that_fails_in_the_page_takes_no_other_with_it(tmp_path: Path) -> None:
    categories = {
        category: {name: {"content": script} for name, script in scripts.items()}
        for category, scripts in SCRIPTS_OF_A_PAGE.items()
    }
    collected = in_browsertime(tmp_path, COLLECT, "page_scripts.mjs", CATEGORIES=categories, FAILS=False)
    assert collected["results"]["timings"] == {"given": [None], "zero": 0}
