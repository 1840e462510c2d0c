"""Networks: each property of the shells has a key, which is checked when it is read, and reaches the shells
unchanged."""

import json
import re
import subprocess
from dataclasses import fields, replace
from pathlib import Path

import pytest
from support.shells import network_namespace

from base.errors import EyelevelError
from base.places import tool
from base.structure import from_json, to_json
from replay.shells.ours import shell
from tuning import networks
from tuning.cross_traffic import flows_of
from tuning.impairments.loss import GilbertElliott
from tuning.impairments.on_off import OnOff
from tuning.networks import Network
from tuning.queues import KINDS, LIMITS, Queue
from tuning.settings import choose

DATA = Path(__file__).with_name("data")
NETWORKS = networks.load()
# The profiles of access networks of today.
TODAY = ("fibre", "cable", "cable-aqm", "wifi", "4g", "4g-poor", "5g", "starlink", "geo")

LINK = "up_mbps = 4\ndown_mbps = 16\nmin_rtt_ms = 20\n"
NETWORK = f"{LINK}queue_ms = 100\n"


def read(text: str, folder: Path) -> Network:
    """The network [x] with these keys."""
    file = folder / "networks.toml"
    file.write_text(f"[x]\n{text}")
    return networks.load(file)["x"]


def words(network: Network) -> list[str]:
    """The options of the shell for a network, without folders and the program."""
    return [Path(word).name if str(word).startswith("/") else str(word) for word in shell(network)][1:]


def test_earlier_networks_are_told_to_the_shells_as_they_were() -> None:
    frozen = json.loads((DATA / "command_lines.json").read_text())
    assert {name: f"mm-net {' '.join(words(NETWORKS[name]))} --seed 1" for name in frozen} == frozen


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{NETWORK}up_delay_ms = 15", "--delay-up 15.000000 --delay-down 5.000000"),
        (f"{NETWORK}loss = 0.19", "--loss 0.100000000"),
        (f"{NETWORK}up_loss = 0.01\ndown_loss = 0.02", "--loss-up 0.010000000 --loss-down 0.020000000"),
        (f"{NETWORK}down_loss = 0.02\nburst_packets = 4", "--loss-down 0.020000000 --burst 4.000000"),
        (
            f"{NETWORK}loss_on = 'up'\n[x.gilbert_elliott]\ngood_to_bad = 0.1\nbad_to_good = 0.4\nloss_in_bad = 0.5",
            "--loss-up 0.100000000 --gilbert-elliott 0.100000000,0.400000000,0.500000000,0.000000000",
        ),
        (
            f"{NETWORK}loss = 0.19\nretransmit_ms = 8\nretransmit_tries = 4\nretransmit_reorder = true",
            "--loss 0.100000000 --retransmit 8.000000 --retransmit-tries 4 --retransmit-reorder",
        ),
        (f"{NETWORK}on_off = {{on_s = 14.9, off_s = 0.1, periodic = true}}", "--intermittent 14.900000000,0.100000000"),
        (
            f"{NETWORK}up_on_off = {{on_s = 5, off_s = 1}}\ndown_on_off = {{on_s = 4, off_s = 2, periodic = true}}",
            "--on-off-up 5.000000000,1.000000000 --intermittent-down 4.000000000,2.000000000",
        ),
        (f"{NETWORK}on_off = {{on_s = 5, off_s = 1}}", "--on-off 5.000000000,1.000000000"),
        (f"{NETWORK}up_queue = {{kind = 'infinite'}}", "--up 4M --uplink-queue=infinite --down"),
        (
            f"{NETWORK}up_queue = {{kind = 'codel', target_ms = 2.5, interval_ms = 40, ecn = true}}",
            "--uplink-queue=codel --uplink-queue-args=bytes=50000,target=2.5,interval=40,ecn=1 ",
        ),
        (
            f"{LINK}up_queue = {{kind = 'codel'}}\ndown_queue = {{kind = 'fq_codel', limit_packets = 900, flows = 64}}",
            "--up 4M --uplink-queue=codel --down 16M --downlink-queue=fq_codel "
            "--downlink-queue-args=packets=900,flows=64",
        ),
        (
            f'{LINK}"up_queue, down_queue" = {{kind = "pie", limit_bdp = 2, qdelay_ref_ms = 10, max_burst_ms = 50}}',
            "--uplink-queue=pie --uplink-queue-args=bytes=20000,qdelay_ref=10,max_burst=50 --down 16M "
            "--downlink-queue=pie --downlink-queue-args=bytes=80000,qdelay_ref=10,max_burst=50",
        ),
        (
            f"{NETWORK}down_queue = {{kind = 'drophead', limit_ms = 50, limit_bytes = 40000}}",
            "--downlink-queue=drophead --downlink-queue-args=bytes=40000",
        ),
    ],
)
def test_every_property_of_the_shells_reaches_them(text: str, options: str, tmp_path: Path) -> None:
    network = read(text, tmp_path)
    assert options.strip() in " ".join(words(network))
    assert from_json(to_json(network), Network, "the network") == network


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{NETWORK}up_delay_ms = 21", "up_delay_ms must be at least 0 and at most min_rtt_ms"),
        (f"{NETWORK}up_delay_ms = 2\njitter_ms = 5", "jitter_ms must be at most the delay of each direction"),
        (f"{NETWORK}loss = 0.1\nup_loss = 0.1", "give loss or up_loss or down_loss, not both"),
        (f"{NETWORK}up_loss = 1", "up_loss must be at least 0 and less than 1"),
        (f"{NETWORK}up_loss = 0.1\nloss_on = 'up'", "loss_on is only for loss; up_loss and down_loss name"),
        (f"{NETWORK}burst_packets = 3", "burst_packets must be at least 1, and long enough"),
        (f"{NETWORK}loss = 0.9\nburst_packets = 1.1", "burst_packets must be at least 1, and long enough"),
        (f"{NETWORK}loss = 0.1\nburst_packets = 3\nretransmit_ms = 5", "for losses that do not come in bursts"),
        (f"{NETWORK}gilbert_elliott = {{good_to_bad = 0.1}}", "gilbert_elliott: the key 'bad_to_good' is missing"),
        (f"{NETWORK}gilbert_elliott = {{good_to_bad = 1.1, bad_to_good = 1}}", "good_to_bad must be from 0 to 1"),
        (f"{NETWORK}gilbert_elliott = {{good_to_bad = 0.1, bad_to_good = 0}}", "become bad and good again"),
        (f"{NETWORK}loss = 0.1\ngilbert_elliott = {{good_to_bad = 0.1, bad_to_good = 1}}", "not both"),
        (f"{NETWORK}loss = 0.1\nretransmit_tries = 3", "retransmit_tries and retransmit_reorder need retransmit_ms"),
        (f"{NETWORK}loss = 0.1\nretransmit_ms = 5\nretransmit_tries = 1", "retransmit_tries must be at least 2"),
        (f"{NETWORK}on_off = {{on_s = 5, off_s = 0}}", "on_off: on_s and off_s must be at least 0.0001"),
        (f"{NETWORK}on_off = {{on_s = 5}}", "on_off: the key 'off_s' is missing"),
        (
            f"{NETWORK}on_off = {{on_s = 5, off_s = 1}}\nup_on_off = {{on_s = 5, off_s = 1}}",
            "give on_off for both directions, or up_on_off and down_on_off",
        ),
        (f"{NETWORK}up_queue = 'codel'", "up_queue is not a table"),
        (f"{NETWORK}up_queue = {{kind = 'red'}}", "up_queue.kind must be one of infinite, droptail, drophead, codel"),
        (
            f"{NETWORK}up_queue = {{kind = 'codel', flows = 3}}",
            "up_queue: the kind codel has no flows; it has limit_ms",
        ),
        (f"{NETWORK}up_queue = {{kind = 'infinite', limit_ms = 3}}", "the kind infinite has no limit_ms; it has none"),
        (f"{NETWORK}up_queue = {{kind = 'codel', target_ms = 0}}", "up_queue.target_ms must be more than 0"),
        (f"{NETWORK}up_queue = {{kind = 'codel', target = 5}}", "up_queue has an unknown key 'target'; allowed are"),
        (f"{NETWORK}up_queue = {{kind = 'fq_codel', flows = 65537}}", "up_queue.flows must be at most 65536"),
        (f"{NETWORK}up_queue = {{kind = 'droptail', limit_bytes = 1499}}", "up_queue gives a queue of less than one"),
        (f"{LINK}up_queue = {{kind = 'codel'}}", "give both down_mbps .* and queue_ms .*or down_queue"),
        (
            f"{LINK}up_queue = {{kind = 'droptail'}}\ndown_queue = {{kind = 'codel'}}",
            "up_queue: the kind droptail needs a limit",
        ),
        (
            f'{NETWORK}"up_queue, down_queue" = {{kind = "codel", limit_ms = 5}}',
            "queue_ms limits no queue: up_queue and down_queue have limits of their own",
        ),
        ("min_rtt_ms = 1\nup_mbps = 1\nup_queue = {kind = 'codel'}", "needs the rates of both directions"),
        ("min_rtt_ms = 1\nup_queue = {kind = 'codel'}", "queue_ms and a rate belong together"),
        (f"{NETWORK}source = 5", "source must be text, not 5"),
    ],
)
def test_nonsense_is_refused_in_one_line_that_names_the_place(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=said) as error:
        read(text, tmp_path)
    assert f"{tmp_path / 'networks.toml'}: [x]" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('min_rtt_ms = [10, 20]\n["x-10ms"]\nmin_rtt_ms = 99', r"\[x-10ms\] makes a second x-10ms, as \[x\] does"),
        ("min_rtt_ms = [10, 10]", r"\[x\] makes a second x-10ms"),
        ("min_rtt_ms = 10\n[all]\nmin_rtt_ms = 20", r"\[all\] stands for all that there is"),
    ],
)
def test_no_network_takes_another_s_name(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=said):
        read(text, tmp_path)


def test_the_loss_of_a_round_trip_follows_from_what_is_said_of_each_direction(tmp_path: Path) -> None:
    network = read(f"{NETWORK}up_loss = 0.1\ndown_loss = 0.2", tmp_path)
    assert network.loss == pytest.approx(0.28)
    assert (network.loss_of("up"), network.loss_of("down")) == (0.1, 0.2)
    model = "gilbert_elliott = {good_to_bad = 0.1, bad_to_good = 0.4, loss_in_bad = 0.5}"
    network = read(f"{NETWORK}{model}", tmp_path)
    assert network.loss == pytest.approx(0.19)
    assert network.loss_of("up") == network.loss_of("down") == pytest.approx(0.1)
    assert read(f"{NETWORK}loss_on = 'down'\n{model}", tmp_path).loss_of("up") == 0


def test_a_trace_may_be_an_axis_by_its_path_from_the_file(tmp_path: Path) -> None:
    for name, lines in (("slow", "100\n"), ("fast", "1\n")):
        (tmp_path / f"{name}.down").write_text(lines)
    file = tmp_path / "networks.toml"
    file.write_text('[g]\nmin_rtt_ms = 20\nup_mbps = 4\nqueue_ms = 500\ndown_trace = ["slow.down", "fast.down"]\n')
    known = networks.load(file)
    assert {name: network.down_mbps for name, network in known.items()} == {
        "g-slow": pytest.approx(0.12032),
        "g-fast": pytest.approx(12.032),
    }


def test_losses_come_behind_each_other_as_the_model_says() -> None:
    bursts = GilbertElliott.bursts(0.1, 4)
    assert bursts.loss == pytest.approx(0.1)
    assert bursts.loss_after_loss == pytest.approx(3 / 4)
    alone = GilbertElliott(0.3, 0.7, loss_in_bad=0.2, loss_in_good=0.2)
    assert alone.loss == pytest.approx(0.2)
    assert alone.loss_after_loss == pytest.approx(0.2)


def test_what_lasts_of_a_loss_that_is_repaired(tmp_path: Path) -> None:
    network = read(f"{NETWORK}up_loss = 0.1\nretransmit_ms = 8\nretransmit_tries = 3", tmp_path)
    assert network.lasting_loss_of("up") == pytest.approx(0.001)
    assert network.lasting_loss_of("down") == 0
    assert replace(network, retransmit_tries=None).lasting_loss_of("up") == 0
    assert replace(network, retransmit_ms=None, retransmit_tries=None).lasting_loss_of("up") == 0.1


def test_a_run_is_not_prepared_on_a_network_that_is_off_at_times() -> None:
    assert not NETWORKS["lte"].follows_clock
    assert replace(NETWORKS["lte"], up_on_off=OnOff(5, 1)).follows_clock


def test_keys_of_tables_are_axes_of_grids_and_may_be_of_both_directions(tmp_path: Path) -> None:
    file = tmp_path / "networks.toml"
    file.write_text(
        f'[g]\n{NETWORK}"up_queue, down_queue" = {{kind = ["codel", "pie"], ecn = [false, true]}}\n'
        "on_off = {on_s = 5, off_s = [1, 2.5]}\nretransmit_ms = 5\nretransmit_tries = [2, 4]\n"
        'retransmit_reorder = [true, false]\nup_loss = 0.1\n[h]\nlike = "g"\nretransmit_tries = 3\n'
    )
    known = networks.load(file)
    assert len(known.groups["g"]) == 32
    network = known["g-codel-no-ecn-2.5off-4tries-arq-reorder"]
    assert network.up_queue == network.down_queue == Queue("codel", ecn=False)
    assert (network.on_off, network.retransmit_tries, network.retransmit_reorder) == (OnOff(5, 2.5), 4, True)
    assert len(choose("network", "h", known)) == 16


def test_every_key_with_one_value_may_be_an_axis() -> None:
    lists = {
        "drop_up_packets",
        "drop_down_packets",
        "drop_up_at_ms",
        "drop_down_at_ms",
        "cross_traffic",
        "up_cross_traffic",
    }
    tables = {
        "up_queue",
        "down_queue",
        "gilbert_elliott",
        "on_off",
        "up_on_off",
        "down_on_off",
        "cross_traffic_on_off",
        "hop",
    }
    given = {field.name for field in fields(Network) if "derived" not in field.metadata} - {"name"} - lists
    assert {key.partition(".")[0] for key in networks.UNITS} == given
    of_queues = {key.partition(".")[2] for key in networks.UNITS if key.startswith("up_queue.")}
    assert of_queues == {field.name for field in fields(Queue)}
    assert tables == {key.partition(".")[0] for key in networks.UNITS if "." in key}


@pytest.mark.needs_shells
def test_queues_are_those_of_the_shells_with_all_their_arguments() -> None:
    done = subprocess.run([tool("mm-net"), "--help"], capture_output=True, text=True, check=True)
    help_text = " ".join(done.stdout.split())
    kinds = re.search(r"--uplink-queue <QUEUE> .*? Possible values: (.*?) --uplink-queue-args", help_text)
    assert kinds
    assert re.findall(r"- (\w+):", kinds[1]) == list(KINDS)
    arguments = re.search(r"Limits, of every queue but (\w+): (.*?); (.*?) --", help_text)
    assert arguments
    limits = {f"limit_{name}" for name in re.findall(r"(\w+)=", arguments[2])}
    assert limits - {"limit_rtt"} == {*LIMITS}
    taken = {kind: re.findall(r"(\w+)=", names) for kind, names in re.findall(r"(\w+): ([^;]*)", arguments[3])}
    assert taken == {kind: list(names.values()) for kind, names in KINDS.items() if names}


def test_a_source_is_no_setting_and_is_its_table_s_own(tmp_path: Path) -> None:
    file = tmp_path / "networks.toml"
    file.write_text(f'[a]\nsource = """A report,\n2026."""\n{NETWORK}[b]\nlike = "a"\n')
    known = networks.load(file)
    assert known.sources == {"a": "A report, 2026."}
    assert replace(known["a"], name="b") == known["b"]


def test_the_profiles_of_today_say_where_their_numbers_come_from() -> None:
    for name in TODAY:
        source = NETWORKS.sources[name]
        assert re.search(r"\b20[12]\d\b", source), name
        assert NETWORKS.groups["all"].count(name) == 0


@pytest.mark.needs_capabilities
@pytest.mark.needs_namespaces
@pytest.mark.needs_shells
def test_the_shells_take_every_network_of_the_testbed() -> None:
    with network_namespace():
        for name in (*NETWORKS.groups["all"], *TODAY, "longlook-jitter-10mbps"):
            done = subprocess.run([*shell(NETWORKS[name]), "--", "true"], capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, ""), name


def test_background_flows_are_read_and_told_apart(tmp_path: Path) -> None:
    text = 'cross_traffic = ["cubic", "quic-cubic"]\nup_cross_traffic = ["bbr"]\n'
    text += "cross_traffic_on_off = {on_s = 1, off_s = 2}\n"
    network = read(NETWORK + text, tmp_path)
    flows = flows_of(network)
    said = [(flow.name, flow.direction, flow.protocol.transport, flow.protocol.congestion_control) for flow in flows]
    assert said == [
        ("cubic", "down", "tcp", "cubic"),
        ("quic-cubic", "down", "quic", "cubic"),
        ("bbr", "up", "tcp", "bbr"),
    ]
    assert {flow.on_off for flow in flows} == {OnOff(1, 2)}
    assert from_json(to_json(network), Network, "it") == network
    # The shells do not handle them.
    assert words(network) == words(network.alone) == words(read(NETWORK, tmp_path))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('cross_traffic = ["vegas"]', "cross_traffic has 'vegas'; background flows are cubic, bbr, reno, quic-cubic"),
        ('up_cross_traffic = ["quic-cubic"]', "over QUIC are sent to the client only"),
        (
            "cross_traffic_on_off = {on_s = 1, off_s = 1}",
            "cross_traffic_on_off needs cross_traffic or up_cross_traffic",
        ),
        (
            'cross_traffic = ["cubic"]\ncross_traffic_on_off = {on_s = 0, off_s = 1}',
            "on_s and off_s must be at least 0.0001",
        ),
        ('cross_traffic = ["cubic"]\ndrop_down_packets = [3]', r"cross_traffic and drop_\* exclude each other"),
        ('cross_traffic = "cubic"', "cross_traffic must be a list"),
    ],
)
def test_background_flows_that_cannot_be_are_refused(text: str, fault: str, tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match=fault):
        read(NETWORK + text + "\n", tmp_path)
