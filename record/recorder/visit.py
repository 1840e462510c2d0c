"""Loads a page like a visitor who reads it to its end."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from base.errors import EyelevelError
from record.page_script import STATE, runnable
from record.recorder.browser_options import SCRIPT_LIMIT_S
from record.recorder.traffic import Traffic
from record.recorder.webdriver import Session, WebDriverError

LOAD_LIMIT_S = 60.0
NO_VALUES: Mapping[str, str] = MappingProxyType({})

# QUIET_S is long enough for a timer or an observer of the page to make further requests. The limit is for endless
# streams.
QUIET_S, QUIET_LIMIT_S = 2.0, 15.0
# Between two steps of scrolling, wait for what they bring into view. The limits are for pages without an end.
STEP_QUIET_S, STEP_LIMIT_S = 0.5, 2.0
MAX_STEPS = 30

SCROLL = """
    const page = document.scrollingElement || document.documentElement;
    const before = page.scrollTop;
    page.scrollTo({top: before + 0.9 * innerHeight, behavior: "instant"});
    return page.scrollTop > before;
"""
# The request is like one for an image or a script: any server may answer, and the page cannot read the answer.
FETCH = "fetch(arguments[0], {mode: 'no-cors', credentials: 'include', cache: 'reload'}).catch(() => {});"
# Checks whether a text is a valid page script, without running it.
CHECK = "new (async () => {}).constructor(arguments[0]);"
AWAIT_SCRIPT = f"""
    const [answer] = arguments, state = {STATE};
    if (!state) return answer(null);
    state.over = () => answer({{fault: state.fault}});
    if (state.ended || state.fault) state.over();
"""
SCRIPT_SO_FAR = f"return {STATE}?.steps.map(([step]) => step)"
# A step may lead to another page, where the next step is made; at most this many times.
DOCUMENTS = 10
NAVIGATION = """
    const [navigation] = performance.getEntriesByType("navigation");
    return [navigation?.name, navigation?.responseStatus];
"""


def visit(
    session: Session, traffic: Traffic, url: str, page_script: str | None = None, values: Mapping[str, str] = NO_VALUES
) -> str:
    """Load `url`, run its `page_script` with `values`, scroll to its end, and wait until the network is quiet; returns
    the browser's user agent.

    If a page's load does not end within the limit, the page is taken as it is. Raises EyelevelError when it is no page,
    or its script does not end.
    """
    if page_script is not None:
        _require_script(session, page_script)
        session.run_in_each_document(runnable(page_script, values))
    try:
        session.open(url)
    except WebDriverError as error:
        if error.kind != "timeout":
            raise EyelevelError(_failure(url, str(error), traffic.failures())) from None
    traffic.await_quiet(STEP_QUIET_S, STEP_LIMIT_S)
    opened, status = session.run(NAVIGATION)
    if not status:
        raise EyelevelError(_failure(url, "no answer", traffic.failures()))
    if not 200 <= status < 400:
        # The proxy answers for a server that it cannot reach.
        of_page = [(what, why) for what, why in traffic.failures() if what == f"GET {opened}"]
        raise EyelevelError(_failure(url, f"it answered with status {status}", of_page))
    if page_script is not None:
        _await_script(session)
        traffic.await_quiet(STEP_QUIET_S, STEP_LIMIT_S)
    for _ in range(MAX_STEPS):
        if not session.run(SCROLL):
            break
        traffic.await_quiet(STEP_QUIET_S, STEP_LIMIT_S)
    traffic.await_quiet(QUIET_S, QUIET_LIMIT_S)
    return str(session.run("return navigator.userAgent"))


def request(session: Session, traffic: Traffic, page: str, urls: Iterable[str]) -> None:
    """Open `page` and let it request `urls`, one after the other, so that no server is overloaded.

    Raises EyelevelError when the page cannot be opened.
    """
    session.ignore_content_policies()
    session.open(page)
    for url in urls:
        session.run(FETCH, url)
        traffic.await_quiet(STEP_QUIET_S, STEP_LIMIT_S)
    traffic.await_quiet(QUIET_S, QUIET_LIMIT_S)


def _require_script(session: Session, page_script: str) -> None:
    try:
        session.run(CHECK, page_script)
    except WebDriverError as error:
        raise EyelevelError(f"the page script is invalid: {error}") from None


def _await_script(session: Session) -> None:
    for _ in range(DOCUMENTS):
        try:
            state = session.await_answer(AWAIT_SCRIPT)
        except WebDriverError as error:
            if error.kind == "javascript error":  # the page was left meanwhile
                continue
            done = session.run(SCRIPT_SO_FAR)
            so_far = f"it did {', '.join(done)}" if done else "none of its steps was done"
            raise EyelevelError(f"the page script did not end within {SCRIPT_LIMIT_S:.0f} s; {so_far}") from None
        if state is None:
            raise EyelevelError("the page script did not run: the page is not an HTML document")
        if state["fault"]:
            raise EyelevelError(f"the page script failed: {state['fault']}")
        return
    raise EyelevelError(f"the page script led from page to page, {DOCUMENTS} times")


def _failure(url: str, otherwise: str, failures: Iterable[tuple[str, str]]) -> str:
    reason = next((f"{what}: {why}" for what, why in failures), otherwise)
    return f"{url} could not be loaded: {reason}"
