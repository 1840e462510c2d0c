"""During a recording, nobody else on the machine can reach its programs, and none of these has any privileges."""

import json
import os
import subprocess
import sys

import pytest
from clients.outsider import PROGRAMS, Findings

from base.namespaces import namespaced
from base.places import PROJECT

OUTSIDER = PROJECT / "tests" / "clients" / "outsider.py"

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser]


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    command = [*namespaced("net"), sys.executable, OUTSIDER, tmp_path_factory.mktemp("sites")]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return Findings(**json.loads(done.stdout))


def test_what_listens_is_reached_from_the_recording_alone(findings: Findings) -> None:
    own_server = len(findings.reached_outside) == 1 and findings.reached_outside[0] in findings.listening
    assert own_server, f"others reach {findings.reached_outside}"
    # The proxy, the browser's driver, the browser's developer tools.
    assert len(findings.reached_inside) >= 3
    assert not [name for name in findings.listening if "X11" in name], "an abstract socket has no permissions"


def test_only_the_proxy_is_in_the_machine_s_network(findings: Findings) -> None:
    networks = {name: {status["network"] for status in findings.programs[name]} for name in PROGRAMS}
    assert networks.pop("mitmdump") == {findings.machine}
    # Chromium's sandbox puts its renderers into separate, empty networks.
    assert networks["chromedriver"] == networks["Xvfb"] < networks["chromium"]
    assert not [name for name, those in networks.items() if findings.machine in those]


def test_no_program_has_capabilities_or_can_get_any(findings: Findings) -> None:
    (users,) = {status["users"] for status in findings.programs["chromedriver"]}
    for name in PROGRAMS:
        # Chromium's sandbox makes user namespaces, in each of which one process has capabilities.
        outside_sandbox = [status for status in findings.programs[name] if status["users"] == users]
        assert outside_sandbox, name
        for status in outside_sandbox:
            assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0, status
            assert status["NoNewPrivs"] == "1", status
            if os.geteuid() == 0:
                assert "0" not in status["Uid"].split(), status


def test_the_browser_s_sandbox_is_on(findings: Findings) -> None:
    browser = findings.programs["chromium"]
    assert not [status["command"] for status in browser if "no-sandbox" in status["command"]]
    renderers = [status for status in browser if "--type=renderer" in status["command"]]
    assert renderers and all(status["Seccomp"] == "2" for status in renderers)
