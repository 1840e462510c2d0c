"""Every registered server, as a parameter of tests; servers that are not set up are skipped by name."""

import pytest

from measure.interop.matrix import missing_program, stock_protocol
from measure.interop.tests import VERSIONS
from servers.registry import all_servers
from tuning.protocols import Protocol


def served_protocols() -> list[pytest.ParameterSet]:
    """The protocols with which servers are tested: for each server, one for each version of HTTP that it speaks."""
    return [
        pytest.param(protocol, id=f"{server.name}-{version}", marks=_skipped(missing_program(server), server.name))
        for server in all_servers().values()
        for version in VERSIONS
        if (protocol := stock_protocol(server, version))
    ]


def server_programs() -> list[pytest.ParameterSet]:
    """Each of those protocols with each program of its server."""
    return [
        pytest.param(one.values[0], program, id=f"{one.id}-{program}", marks=one.marks)
        for one in served_protocols()
        if isinstance(protocol := one.values[0], Protocol)
        for program in all_servers()[protocol.server].programs
    ]


def is_called(name: str, program: str) -> bool:
    """Whether a process with this name (as in /proc/PID/comm, up to 15 letters) belongs to `program`: uwsgi is
    uwsgi-core."""
    return name.startswith(program[:15])


def _skipped(missing: str | None, server: str) -> list[pytest.MarkDecorator]:
    return [pytest.mark.skip(reason=f"{server}: {missing}")] if missing else []
