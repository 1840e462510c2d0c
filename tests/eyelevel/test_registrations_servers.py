"""Toys are added to a copy of the testbed in a temporary folder, measured, and followed to the report.

A server or a browser needs one file and a line of packages; an instrument, an importer or a kind of hop one file; a key
of protocols a field and its server; an option of campaigns two entries.
"""

import gzip
import json
import sys
from pathlib import Path

import pandas as pd
import pytest
from support.checkout import LIMIT_S, Checkout, Ending

from base.places import tool
from browsers.chromium.program import BINARY

SERVER = '''
"""Serving over TCP by the program toy-server, which is given every answer beforehand."""

import base64
import json
import subprocess
from contextlib import contextmanager

from base.jail import jailed
from base.places import tool
from base.processes import running
from servers import kernel_sockets
from servers.application.wsgi import load_responses
from servers.contract import Server


class Toy(Server):
    name = "toy"
    transports = ("tcp",)
    congestion_controls = ("cubic",)
    programs = {"toy-server": "--version"}
    choices = {"most_streams": (7, 100)}

    @contextmanager
    def serve(self, serving):
        certificates = {address: [str(one.chain), str(one.key)] for address, one in serving.certificates.items()}
        answers = {}
        for exchange in load_responses(serving.content):
            response = exchange.response
            headers = {name.lower(): value for name, value in response.headers}
            body = base64.b64encode(response.body).decode()
            answers[f"{exchange.method} {exchange.url}"] = [exchange.status, headers, body, response.file]
        job = {"listening": serving.listening(), "certificates": certificates, "answers": answers}
        job["streams"] = serving.protocol.most_streams or 100
        work = serving.folder / "toy.json"
        work.write_text(json.dumps({**job, "log": str(serving.request_log or "/dev/null")}))
        log = serving.folder / "toy.log"
        command = jailed(serving.jail(tool("node")), [tool("toy-server"), work])
        with running("toy-server", command, log, stdout=subprocess.PIPE) as daemon:
            if not daemon.process.stdout.readline():
                daemon.process.wait()
                raise daemon.failure()
            yield

    def congestion_controls_taken(self, folder):
        return kernel_sockets.congestion_controls(folder)


SERVER = Toy()
'''

SERVER_PROGRAM = """#!NODE
const fs = require("fs");
const http2 = require("http2");
if (process.argv[2] === "--version") {
  console.log("toy-server 1.0");
  process.exit();
}
const {listening, certificates, answers, streams, log} = JSON.parse(fs.readFileSync(process.argv[2]));
let waiting = listening.length;
for (const [address, port] of listening) {
  const [cert, key] = certificates[address].map((file) => fs.readFileSync(file));
  const server = http2.createSecureServer({cert, key, settings: {maxConcurrentStreams: streams}});
  server.on("stream", (stream, request) => {
    const [method, url] = [request[":method"], `https://${request[":authority"]}${request[":path"]}`];
    const [status, headers, body, file] = answers[`${method} ${url}`] || [404, {}, "", ""];
    fs.appendFileSync(log, [file ? "exact" : "miss", method, url, file].join("\\t") + "\\n");
    stream.respond({":status": status, ...headers}, {sendDate: false});
    stream.end(Buffer.from(body, "base64"));
  });
  server.listen(port, address, () => --waiting || console.log("listening"));
}
"""

PROTOCOLS = """
[toy]
like = "tcp"
server = "toy"
most_streams = 7

[toy-bbr]
like = "toy"
congestion_control = "bbr"

[toy-many]
like = "toy"
most_streams = 1000

[nginx-streams]
like = "tcp"
most_streams = 7
"""

BROWSER = '''
"""Chromium as the program toy-browser starts it, which has a netlog of another name."""

from pathlib import Path

from base.places import tool
from browsers.chromium_browser import Chromium


class Toy(Chromium):
    name = "toy"
    programs = {"toy-browser": "--version", "chromedriver": "--version"}
    network_log = "netlog-toy.json.gz"

    def settings(self):
        return {**super().settings(), "toys": 1}

    def browsertime_options(self, page, protocol, connection_options, results):
        options = super().browsertime_options(page, protocol, connection_options, results)
        options["chrome"]["binaryPath"] = str(tool("toy-browser"))
        return options

    def screenshot_command(self, url, picture):
        Path(__file__).with_suffix(".asked").touch()
        return [tool("toy-browser"), *super().screenshot_command(url, picture)[1:]]


BROWSER = Toy()
'''

BROWSER_PROGRAM = """#!/bin/sh
if [ "$1" = --version ]; then
  echo "Toy Browser 1.0"
else
  exec CHROMIUM --toys=1 "$@"
fi
"""

KEY = """    most_streams: int | None = field(default=None, metadata=_TCP | _CHOICE)
"""
AFTER = "    max_window_packets: int | None = field(default=None, metadata=_QUIC | _CHOICE)\n"
SETTING = """    greeting: str = "off"
"""
OPTION = """    Option("--greeting", "A greeting.", ("campaign",), choices=("hello", "none"), setting="greeting"),
"""


INSTRUMENT = '''
"""Counts the threads of a load's first process, and the devices in the browser's network namespace."""

import os
from contextlib import contextmanager
from pathlib import Path

from base.files import read_json, write_json
from dataset.columns import Column
from measure.instruments.contract import Instrument


class Toy(Instrument):
    name = "toy"
    columns = (
        Column("toy_threads", "", "how many threads the first process had", is_count=True),
        Column("toy_devices", "", "how many devices the browser saw", is_count=True),
    )

    @contextmanager
    def around_load(self, load):
        threads = len(os.listdir(f"/proc/{load.root}/task"))
        yield
        write_json(load.folder / "toy.json", {"threads": threads})

    @contextmanager
    def around_visit(self, folder):
        write_json(folder / "toy-visit.json", {"devices": os.listdir("/sys/class/net")})
        yield

    def read(self, run):
        if not (run.folder / "toy.json").exists():
            return {}
        devices = read_json(run.folder / "toy-visit.json")["devices"]
        return {"toy_threads": read_json(run.folder / "toy.json")["threads"], "toy_devices": len(devices)}


INSTRUMENT = Toy()
'''

HOP = '''
"""A hop that ends TCP: toy-hop."""

import subprocess
from contextlib import contextmanager

from base.places import tool
from base.processes import running
from replay.hops.contract import HopKind
from replay.hops.namespace import FOLDER, lead_in, version
from replay.world import open_ports


class Toy(HopKind):
    name = "toy"
    programs = {"toy-hop": "--version"}
    ends = ("tcp",)
    congestion_controls = ("cubic",)
    counts = (("connections from the client", "accepted", 1), ("connections to the servers", "opened", 1))

    def protocol_refusal(self, protocol):
        return None if protocol.in_kernel else "is a toy for TCP"

    @contextmanager
    def at_work(self, work):
        lead_in(self.ends)
        open_ports()
        work.account["program"] = version(tool("toy-hop"), "--version")
        with running("toy-hop", [tool("toy-hop")], FOLDER / "toy.log", stdout=subprocess.PIPE) as daemon:
            daemon.first_line()
            yield


HOP = Toy()
'''
HOP_PROGRAM = """#!PYTHON
import socket, sys, threading

if sys.argv[1:] == ["--version"]:
    sys.exit(print("toy-hop 1.0"))


def pass_on(source, target):
    while data := source.recv(1 << 16):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)


listener = socket.socket()
listener.setsockopt(socket.SOL_IP, 19, 1)  # IP_TRANSPARENT
listener.bind(("0.0.0.0", 443))
listener.listen()
print("ready", flush=True)
while True:
    client, _ = listener.accept()
    server = socket.create_connection(client.getsockname())
    for pair in ((client, server), (server, client)):
        threading.Thread(target=pass_on, args=pair, daemon=True).start()
"""
HOP_NETWORK = """
[toy]
min_rtt_ms = 20
hop = {kind = "toy", min_rtt_ms = 20}

[toy-bbr]
like = "toy"
hop = {congestion_control = "bbr"}
"""
# Networks and protocols → why the hop refuses them.
HOP_FAULTS = {
    ("toy-bbr", "tcp"): "toy-bbr: hop.congestion_control of toy must be cubic",
    ("toy", "quic"): "quic: the hop of toy is a toy for TCP",
}

FORMAT = '''
"""Pages as JSON: URL → HTML."""

import json

from base.bounded import read_regular
from record.assemble import assemble
from record.http1 import Response
from record.intake import Intake
from record.layout import authority_of
from record.limits import BODY_BYTES
from record.site import Exchange

NAME = "toy"
DESCRIPTION = "pages as JSON (.toy)"
ENDINGS = (".toy",)


def recognises(path):
    return path.is_file() and path.suffix == ".toy"


def read(path, *, keep_cookies=False):
    intake = Intake(path.name, keep_cookies=keep_cookies)
    for url, text in json.loads(read_regular(path, BODY_BYTES)).items():
        body = text.encode()
        headers = (("content-type", "text/html"), ("content-length", str(len(body))))
        intake.take(url, lambda: Exchange("GET", url, Response(200, "OK", headers, body), authority_of(url)))
    return assemble(intake, {"tool": "toys", "server_ips": "not recorded; one for each host"})
'''
PAGES = {
    "https://toys.test/": '<!doctype html><p>toys</p><iframe src="https://other.test/"></iframe>',
    "https://other.test/": "<!doctype html><p>more</p>",
}


@pytest.fixture(scope="module")
def testbed(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """The testbed with all toys."""
    folder = tmp_path_factory.mktemp("toys")
    testbed = Checkout(folder)
    (testbed.folder / "servers" / "toy.py").write_text(SERVER)
    (testbed.folder / "browsers" / "toy.py").write_text(BROWSER)
    (testbed.folder / "measure" / "instruments" / "toy.py").write_text(INSTRUMENT)
    (testbed.folder / "replay" / "hops" / "toy.py").write_text(HOP)
    (testbed.folder / "record" / "formats" / "toy.py").write_text(FORMAT)
    testbed.install("toy-server", SERVER_PROGRAM.replace("NODE", str(tool("node"))))
    testbed.install("toy-browser", BROWSER_PROGRAM.replace("CHROMIUM", str(BINARY)))
    testbed.install("toy-hop", HOP_PROGRAM.replace("PYTHON", sys.executable))
    testbed.tune("protocols", PROTOCOLS)
    testbed.tune("networks", HOP_NETWORK)
    testbed.enter("tuning/protocols.py", AFTER, KEY)
    testbed.enter("dataset/settings.py", "class LoadSettings:\n", SETTING)
    testbed.enter("eyelevel/options.py", "OPTIONS: tuple[Option, ...] = (\n", OPTION)
    return testbed


@pytest.fixture(scope="module")
def endings(testbed: Checkout, tmp_path_factory: pytest.TempPathFactory) -> list[Ending]:
    """How the import of a site, a campaign on it over two protocols, its report, and what is done with them ended."""
    recording = tmp_path_factory.mktemp("recording") / "toys.toy"
    recording.write_text(json.dumps(PAGES))
    begun = ["campaign", "--campaign", "try", "--results", testbed.results, "--no-validate"]
    options = ["--sites", "toys", "--net", "toy", "--proto", "tcp,toy", "--browser", "toy", "--greeting", "hello"]
    report = ["report", testbed.results / "try"]
    other = [*begun, "--greeting", "none"]
    refused = [["campaign", "--sites", "toys", "--net", net, "--proto", proto] for net, proto in HOP_FAULTS]
    endings = testbed.each(["import", recording], [*begun, *options, "--runs", "1"], report)
    assert [ending.status for ending in endings] == [0, 0, 0], endings
    # Another process resumes the campaign.
    endings += testbed.each(begun, other, *refused)
    return endings


@pytest.fixture(scope="module")
def campaign(testbed: Checkout, endings: list[Ending]) -> Path:
    """The folder of the campaign."""
    assert endings
    return testbed.results / "try"


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.loads
def test_a_server_a_browser_an_instrument_and_an_option_are_followed_to_the_report(
    testbed: Checkout, campaign: Path, endings: list[Ending]
) -> None:
    for package in ("toy-server", "toy-browser"):
        assert f"{package} 1.*" in testbed.list_package(package)
    runs = pd.read_csv(campaign / "runs.csv").set_index("protocol")
    assert set(runs.index[runs["valid"]]) == {"tcp", "toy"}, runs["reason"].tolist()
    runs = runs[runs["valid"]]
    page = (campaign / "report" / "everything.html").read_text()
    # The server answers as NGINX does.
    assert (runs.loc["toy", ["served", "missed"]] == runs.loc["tcp", ["served", "missed"]]).all()
    assert (campaign / runs.loc["toy", "folder"] / "requests.tsv").read_text().startswith("exact\tGET\thttps://")
    protocols = pd.read_csv(campaign / "report" / "tables" / "table1_protocols.csv").set_index("protocol")
    assert protocols["server"].to_dict() == {"TCP": "nginx", "toy": "toy"}
    assert protocols["other keys"].to_dict() == {"TCP": "-", "toy": "most_streams = 7"}
    comparisons = pd.read_csv(campaign / "report" / "tables" / "comparisons.csv")
    assert ("toy", "tcp") in set(zip(comparisons["compared"], comparisons["reference"], strict=True))
    assert "toy against TCP" in page and "toy-server 1.0" in page
    # The browser made both loads.
    for protocol in ("tcp", "toy"):
        with gzip.open(campaign / runs.loc[protocol, "folder"] / "netlog-toy.json.gz", "rt") as log:
            events = log.read()
        assert "--toys=1" in events
        # The server sent the protocol's key to the browser.
        assert ('(SETTINGS_MAX_CONCURRENT_STREAMS)","value":7}' in events) == (protocol == "toy")
    # The instrument observed both loads.
    assert (runs["toy_threads"] >= 1).all() and (runs["toy_devices"] >= 2).all()
    document = json.loads((campaign / "campaign.json").read_text())
    assert document["columns"]["toy_devices"]["description"] == "how many devices the browser saw"
    # The campaign keeps the option's value.
    assert document["settings"]["greeting"] == "hello"
    same, other = endings[3:5]
    assert same.status == 0, same.errors
    assert "greeting was hello, is none" in other.errors
    readings = pd.read_csv(campaign / "report" / "tables" / "readings.csv").set_index(["column", "protocol"])
    assert readings.loc[("toy_devices", "tcp"), "mean"] == runs.loc["tcp", "toy_devices"]
    assert "toy_threads" in page
    # The canary's page is loaded in this browser, too: no other browser needs to be installed.
    assert (testbed.folder / "browsers" / "toy.asked").exists()
    for fact in ("<dt>name</dt><dd>toy</dd>", "<dt>toys</dt><dd>1</dd>", "Toy Browser 1.0"):
        assert fact in page
    assert "<dt>chromium</dt>" not in page


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.loads
def test_a_kind_of_hop_is_followed_to_the_report(campaign: Path, endings: list[Ending]) -> None:
    for refusal, fault in zip(endings[5:], HOP_FAULTS.values(), strict=True):
        assert fault in refusal.errors
    assert json.loads((campaign / "campaign.json").read_text())["versions"]["toy-hop"] == "toy-hop 1.0"
    runs = pd.read_csv(campaign / "runs.csv")
    runs = runs[runs["valid"]]
    assert sorted(runs["protocol"]) == ["tcp", "toy"]
    for folder in runs["folder"]:
        hop = json.loads((campaign / folder / "replay.json").read_text())["hop"]
        assert (hop["kind"], hop["program"], hop["packets_beside"]) == ("toy", "toy-hop 1.0", 0)
        assert 0 < hop["opened"] == hop["accepted"]
    page = (campaign / "report" / "everything.html").read_text()
    assert "hop (toy, cubic, initial window 10), then 20 ms" in page


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.loads
def test_an_importer_is_followed_to_the_report(testbed: Checkout, campaign: Path) -> None:
    assert "pages as JSON (.toy)" in " ".join(testbed.eyelevel("import", "--help").stdout.split())
    runs = pd.read_csv(campaign / "runs.csv")
    valid = runs.loc[runs["valid"], ["site", "served", "missed"]]
    assert valid.to_numpy().tolist() == [["toys", 2, 0]] * 2
    assert "toys" in (campaign / "report" / "everything.html").read_text()


def test_a_server_refuses_what_it_cannot_do(testbed: Checkout) -> None:
    faults = {
        "toy-bbr": "congestion_control must be one of cubic for toy, not 'bbr'",
        "toy-many": "most_streams must be one of 7, 100 for toy, not 1000",
        "nginx-streams": "most_streams is not for nginx",
    }
    begun = ["campaign", "--sites", "demo-light", "--net", "dsl"]
    refusals = testbed.each(*([*begun, "--proto", protocol] for protocol in faults))
    for refused, (protocol, fault) in zip(refusals, faults.items(), strict=True):
        assert refused.errors.startswith("eyelevel: ")
        assert refused.errors.endswith(f"protocols.toml: [{protocol}]: {fault}\n")
