"""The few WebDriver commands (W3C) that a recording needs."""

import json
from http.client import HTTPConnection, HTTPException
from typing import Any

from base.errors import EyelevelError
from record.recorder.limits import ANSWER_BYTES

# On a busy machine, a command may take this much longer than the limits that the driver itself enforces.
MARGIN_S = 60.0


class WebDriverError(EyelevelError):
    """An error returned by the driver; `kind` is WebDriver's own word for it, such as `timeout`."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"the browser says: {message.splitlines()[0] if message else kind}")
        self.kind = kind


class Session:
    """A browser under a driver's control."""

    def __init__(self, port: int, capabilities: dict[str, Any], limit_s: float) -> None:
        """Start the browser. No command may take longer than `limit_s`. Raises EyelevelError."""
        self._port = port
        self._limit_s = limit_s + MARGIN_S
        self._path = "/session"
        answer = self._ask("POST", "", capabilities)
        self._path += f"/{answer['sessionId']}"
        self.browser = f"{answer['capabilities']['browserName']} {answer['capabilities']['browserVersion']}"

    def open(self, url: str) -> None:
        """Load `url`; returns after the load event."""
        self._ask("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: object) -> Any:
        """The return value of `script`, the body of a function that is called with `arguments` in the page."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": arguments})

    def await_answer(self, script: str) -> Any:
        """The answer of `script`, the body of a function whose argument is a callback: it calls this callback with the
        answer.

        Raises WebDriverError of the kind `script timeout` when that takes too long, and of the kind `javascript error`
        when the page is left meanwhile.
        """
        return self._ask("POST", "/execute/async", {"script": script, "args": []})

    def run_in_each_document(self, script: str) -> None:
        """Run `script` at the beginning of each document that is opened from now on, including those of frames."""
        command = "Page.addScriptToEvaluateOnNewDocument"
        self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": {"source": script}})

    def ignore_content_policies(self) -> None:
        """Let pages that are opened from now on request what their Content Security Policies forbid."""
        self._ask("POST", "/goog/cdp/execute", {"cmd": "Page.setBypassCSP", "params": {"enabled": True}})

    def _ask(self, method: str, path: str, body: dict[str, Any]) -> Any:
        connection = HTTPConnection("127.0.0.1", self._port, timeout=self._limit_s)
        try:
            connection.request(method, self._path + path, json.dumps(body), {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read(ANSWER_BYTES))["value"]
        except (OSError, HTTPException, ValueError) as error:
            raise EyelevelError(f"the browser's driver does not answer ({error})") from None
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise WebDriverError(value["error"], value.get("message", ""))
        return value
