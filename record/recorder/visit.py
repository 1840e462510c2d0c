"""Loads a page as a visitor would who reads it to its end."""

from collections.abc import Iterable

from base.errors import EyelevelError
from record.recorder.traffic import Traffic
from record.recorder.webdriver import Session, WebDriverError

LOAD_LIMIT_S = 60.0

# Long enough for a timer or an observer of the page to ask for more. The limits are for streams without an end.
QUIET_S, QUIET_LIMIT_S = 2.0, 15.0
# Between two steps of scrolling, for what they bring into view. Some pages have no end.
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
STATUS = "return performance.getEntriesByType('navigation')[0]?.responseStatus || 0"


def visit(session: Session, traffic: Traffic, url: str) -> str:
    """Load `url`, scroll to its end, wait until the network is quiet; returns the browser's user agent.

    A page whose load never ends is taken as it is after the limit. Raises EyelevelError when it is no page.
    """
    try:
        session.open(url)
    except WebDriverError as error:
        if error.kind != "timeout":
            raise EyelevelError(_failure(url, traffic, str(error))) from None
    traffic.await_quiet(STEP_QUIET_S, STEP_LIMIT_S)
    status = session.run(STATUS)
    if not 200 <= status < 400:
        raise EyelevelError(_failure(url, traffic, f"it answered with status {status}" if status else "no answer"))
    for _ in range(MAX_STEPS):
        if not session.run(SCROLL):
            break
        traffic.await_quiet(STEP_QUIET_S, STEP_LIMIT_S)
    traffic.await_quiet(QUIET_S, QUIET_LIMIT_S)
    return str(session.run("return navigator.userAgent"))


def request(session: Session, traffic: Traffic, page: str, urls: Iterable[str]) -> None:
    """Open `page` and let it ask for `urls`, one after the other, so that no server is overloaded.

    Raises EyelevelError when it cannot be opened.
    """
    session.ignore_content_policies()
    session.open(page)
    for url in urls:
        session.run(FETCH, url)
        traffic.await_quiet(STEP_QUIET_S, STEP_LIMIT_S)
    traffic.await_quiet(QUIET_S, QUIET_LIMIT_S)


def _failure(url: str, traffic: Traffic, otherwise: str) -> str:
    reason = next((f"{what}: {why}" for what, why in traffic.failures()), otherwise)
    return f"{url} could not be loaded: {reason}"
