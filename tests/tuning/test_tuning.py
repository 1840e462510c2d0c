"""Networks and protocols: the paper's tables, and the errors for a wrong settings file."""

import hashlib
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from base.errors import EyelevelError
from base.namespaces import namespaced
from base.places import PROJECT
from base.structure import from_json, to_json, unstructured
from measure.run.aliases import choose_protocols
from replay.hops.registry import require_served_on
from replay.shells.ours import shell
from replay.spec import ReplaySpec
from servers.registry import require_served, server_of
from tuning import kernel, networks, protocols
from tuning.settings import USER_FOLDER, choose

DATA = Path(__file__).with_name("data")

# Wolsing et al. (ANRW 2019), Table 2: per-direction loss, queue bytes up and down.
TABLE_2 = {
    "dsl": (12, 0, 7500, 37500),
    "lte": (37, 0, 70000, 262500),
    "da2gc": (131, 0.016638, 11700, 11700),
    "mss": (380, 0.030464, 47250, 47250),
}


def test_networks_are_those_of_the_paper() -> None:
    loaded = networks.load()
    assert list(loaded.groups["all"]) == list(TABLE_2)
    for name, (delay_ms, loss, up_bytes, down_bytes) in TABLE_2.items():
        network = loaded[name]
        assert network.delay_ms == delay_ms
        assert network.loss_of("up") == network.loss_of("down") == pytest.approx(loss, abs=1e-6)
        assert [network.queue_bytes_of(direction) for direction in ("up", "down")] == [up_bytes, down_bytes]


def test_protocols_are_those_of_the_paper() -> None:
    described = {
        p.name: (p.transport, p.congestion_control, p.initial_window_packets, p.pacing)
        for p in choose("protocol", "all", protocols.load())
    }
    assert described == {
        "tcp": ("tcp", "cubic", 10, False),
        "tcp+": ("tcp", "cubic", 32, True),
        "tcp+bbr": ("tcp", "bbr", 32, True),
        "quic": ("quic", "cubic", 32, True),
        "quic+bbr": ("quic", "bbr", 32, True),
    }


@pytest.mark.parametrize("name", [*TABLE_2, "delay10"])
@pytest.mark.parametrize("protocol", protocols.load())
def test_a_spec_survives_the_way_into_the_namespaces(name: str, protocol: str) -> None:
    spec = ReplaySpec(Path("/sites/x"), networks.load()[name], protocols.load()[protocol], Path("/log"))
    assert from_json(to_json(spec), ReplaySpec, "the specification") == spec


NETWORK = "up_mbps = 1\ndown_mbps = 1\nmin_rtt_ms = 10\nloss = 0\nqueue_ms = 100\n"
QUIC = 'transport = "quic"\ncongestion_control = "cubic"\ninitial_window_packets = 32\n'
PROTOCOL = 'transport = "tcp"\ncongestion_control = "cubic"\ninitial_window_packets = 10\npacing = false\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[x", "networks.toml: "),
        ("x = 1", r"\[x\] is not a table"),
        (
            f'["x@firefox"]\n{NETWORK}',
            r"\[x@firefox\]: 'x@firefox' is not a name for a network: '@' stands",
        ),
        (f"[x]\n{NETWORK}colour = 1", "unknown key 'colour'; allowed are min_rtt_ms, up_delay_ms, jitter_ms"),
        ("[x]\nup_mbps = 1", "'min_rtt_ms' is missing"),
        ('[x]\nlike = "lte"\nmin_rtt_ms = "1"', "min_rtt_ms must be a number, not '1'"),
        (f"[x]\n{NETWORK}up_trace = 't'", "up_mbps or up_trace, not both"),
        ("[x]\nmin_rtt_ms = 1\ndown_mbps = 1\nup_mbps = 1", "queue_ms and a rate belong together"),
        (f"[x]\n{NETWORK}jitter_ms = 6", "at most half of min_rtt_ms"),
        ("[x]\nmin_rtt_ms = 1\nqueue_ms = 100\nup_mbps = 1\ndown_trace = 'none.down'", "none.down"),
        ("[x]\nmin_rtt_ms = 1\nqueue_ms = 100\nup_mbps = 1\ndown_trace = 'networks.toml'", "is not a Mahimahi trace"),
        (f"[x]\n{NETWORK.replace('up_mbps = 1', 'up_mbps = 0')}", "more than 0"),
        (f"[x]\n{NETWORK.replace('loss = 0', 'loss = 1')}", "less than 1"),
        (f"[x]\n{NETWORK.replace('loss = 0', 'loss = true')}", "must be a number"),
        (f"[x]\n{NETWORK.replace('queue_ms = 100', 'queue_ms = 1')}", "one packet"),
        (f"[x]\n{NETWORK}retransmit_ms = 50", "retransmit_ms must be more than 0, and needs a loss"),
        (f"[x]\n{NETWORK.replace('loss = 0', 'loss = 0.1')}retransmit_ms = 0", "retransmit_ms must be more than 0"),
        (f"[x]\n{NETWORK}drop_up_packets = [3, 0]", "drop_up_packets must be whole numbers of at least 1, each once"),
        (f"[x]\n{NETWORK}drop_down_packets = [3, 3]", "drop_down_packets must be .* each once"),
        (f"[x]\n{NETWORK}drop_down_packets = 3", "drop_down_packets must be a list, not 3"),
        (f"[x]\n{NETWORK}drop_up_packets = [1.5]", "drop_up_packets must be a whole number, not 1.5"),
        (f"[x]\n{NETWORK}drop_up_at_ms = [-1]", "drop_up_at_ms must be times of at least 0, each once"),
        (f"[x]\n{NETWORK}drop_down_at_ms = [1, 1.0]", "drop_down_at_ms must be .* each once"),
        (f"[x]\n{NETWORK}quiet_ms = 500", "quiet_ms must be at least 1000"),
        (f"[x]\n{NETWORK}quiet_ms = 1500.5", "quiet_ms must be a whole number"),
    ],
)
def test_a_wrong_networks_file_is_one_line_that_names_the_place(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "networks.toml"
    file.write_text(text)
    with pytest.raises(EyelevelError, match=said) as error:
        networks.load(file)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"[x]\n{PROTOCOL.replace('tcp', 'sctp')}", "tcp, quic"),
        (f"[x]\n{PROTOCOL.replace('10', '0')}", "at least 1"),
        (f"[x]\n{PROTOCOL.replace('false', '1')}", "true or false"),
        (f"[x]\n{PROTOCOL.replace('cubic', 'Vegas!')}", "congestion_control must be a name that the kernel can have"),
        (f'[x]\n{PROTOCOL}connection_options = ["TBBR"]', "transport quic"),
        (f'[x]\n{PROTOCOL}server_sysctls = {{"vm.swappiness" = "1"}}', "under net."),
        (
            f"[x]\n{QUIC}pacing = true\nmax_window_packets = 31",
            "must be from 32, the initial window, to 100000, not 31",
        ),
        (f"[x]\n{PROTOCOL}max_window_packets = 100", "max_window_packets is for transport quic"),
        (f"[x]\n{PROTOCOL}emulated_connections = 1", "emulated_connections is for transport quic"),
        (f'[x]\n{PROTOCOL}scheduler = "urgency"', "scheduler is for transport quic"),
        (f"[x]\n{PROTOCOL}notsent_lowat_bytes = 0", "notsent_lowat_bytes must be from 1 to 4294967295, not 0"),
        (
            f'[x]\n{PROTOCOL}notsent_lowat_bytes = 1\nserver_sysctls = {{"net.ipv4.tcp_notsent_lowat" = "2"}}',
            "notsent_lowat_bytes and net.ipv4.tcp_notsent_lowat of server_sysctls are the same",
        ),
        (f"[x]\n{QUIC}pacing = true\nnotsent_lowat_bytes = 0", "notsent_lowat_bytes is for transport tcp"),
        (f"[x]\n{PROTOCOL}tls_record_bytes = 511", "tls_record_bytes must be from 512 to 16384, not 511"),
        (f"[x]\n{PROTOCOL}tls_record_bytes = 16385", "tls_record_bytes must be from 512 to 16384, not 16385"),
        (f"[x]\n{QUIC}pacing = true\ntls_record_bytes = 4096", "tls_record_bytes is for transport tcp"),
        (f'[x]\n{PROTOCOL}tls_group = "P-256"\nearly_data = true', "HelloRetryRequest"),
        (f"[x]\n{QUIC}pacing = true\nfast_open = true", "transport tcp"),
        (f"[x]\n{QUIC}pacing = true\nbackup_connections = true", "backup_connections is for transport tcp"),
        (f'[x]\n{QUIC}pacing = true\ntls_group = "P-384"\nearly_data = true', "HelloRetryRequest"),
        (f'[x]\n{QUIC}pacing = true\nconnection_options = ["ABC"]', "four letters"),
        (f'[x]\n{QUIC}pacing = true\nserver_sysctls = {{"net.x" = 1}}', "server_sysctls must be text, not 1"),
        ('[x]\nlike = "y"', r"\[x\]: like: there is no \[y\]; there are tcp, tcp\+"),
        ("[x]\nlike = 1", "like must be the name of a table, not 1"),
        ('[x]\nlike = "y"\n[y]\nlike = "x"', "like is circular: x → y → x"),
        ('[x]\nlike = "x"', "like is circular: x → x"),
    ],
)
def test_a_wrong_protocols_file_is_said(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "protocols.toml"
    file.write_text(text)
    with pytest.raises(EyelevelError, match=said):
        protocols.load(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"[x]\n{QUIC.replace('cubic', 'vegas')}pacing = true", "one of cubic, bbr, bbr2 for quic_server"),
        (f"[x]\n{QUIC}pacing = false", "always paces"),
        (f'[x]\n{QUIC}pacing = true\nconnection_options = ["IW20"]', "not an initial window of 32 packets"),
        (f'[x]\n{QUIC}pacing = true\nconnection_options = ["BYTE", "TBBR"]', r"TBBR, which is not cubic's tag \(BYTE"),
        (
            f"[x]\n{QUIC.replace('cubic', 'bbr')}pacing = true\nemulated_connections = 1",
            "emulated_connections is for congestion_control cubic: bbr has no such number",
        ),
        (f"[x]\n{QUIC}pacing = true\nemulated_connections = 11", "9, 10 for quic_server, not 11"),
        (f"[x]\n{QUIC}pacing = true\nemulated_connections = 0", "9, 10 for quic_server, not 0"),
        (f'[x]\n{QUIC}pacing = true\nscheduler = "lifo"', "scheduler must be one of urgency, urgency-incremental,"),
        (f'[x]\n{PROTOCOL}server = "quic_server"', "quic_server serves over quic, not over tcp"),
        (
            f'[x]\n{PROTOCOL}server = "apache"',
            "there is no server 'apache'; there are caddy, nginx, quic_server, quinn",
        ),
    ],
)
def test_what_a_server_refuses_is_said_when_it_is_chosen_and_when_it_is_replayed(
    text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "protocols.toml"
    file.write_text(text)
    known = protocols.load(file)
    with pytest.raises(EyelevelError, match=said) as error:
        choose_protocols("x", known)
    assert "\n" not in str(error.value)
    if "there is no" not in said:
        assert f"{file}: [x]" in str(error.value)
    with pytest.raises(EyelevelError, match=said):
        require_served(known.values())


def test_connection_options_follow_from_the_settings_and_further_ones_are_kept() -> None:
    chosen = choose_protocols("quic, quic+bbr, quic+bbr2, quic+iw10, tcp", protocols.load())
    options = {protocol.name: protocol.connection_options for protocol in chosen}
    assert options == {
        "quic": ("BYTE",),
        "quic+bbr": ("TBBR",),
        "quic+bbr2": ("B2ON",),
        "quic+iw10": ("BYTE", "IW10"),
        "tcp": (),
    }
    tagged = replace(protocols.load()["quic"], connection_options=("NCMR",))
    assert require_served([tagged])[0].connection_options == ("BYTE", "NCMR")
    assert require_served(require_served([tagged])) == require_served([tagged])


def test_what_a_browser_knows_over_quic_is_said_also_where_a_setting_does_not(tmp_path: Path) -> None:
    # A campaign that began before `known_servers` existed has another setting, and is not resumed.
    file = tmp_path / "protocols.toml"
    file.write_text(
        f"[mine]\n{QUIC}pacing = true\n[unknown]\n{QUIC}pacing = true\nknown_servers = false\n[t]\n{PROTOCOL}"
    )
    known = {name: protocol.known_servers for name, protocol in protocols.load(file).items()}
    assert known == {"mine": True, "unknown": False, "t": None}


def test_a_server_that_leaves_no_choice_of_tls_records_refuses_one() -> None:
    records = replace(protocols.load()["tcp"], tls_record_bytes=4096)
    assert server_of(records).refusal(records) is None
    of_caddy = replace(protocols.load()["caddy-h2"], tls_record_bytes=4096)
    assert server_of(of_caddy).refusal(of_caddy) == "tls_record_bytes is not for caddy"


def test_every_protocol_of_the_testbed_is_served_and_is_what_it_was() -> None:
    """The expected values were written when each protocol was spelled out, without `like`."""
    frozen = json.loads((DATA / "protocols.json").read_text())
    served = {protocol.name: unstructured(protocol) for protocol in require_served(protocols.load().values())}
    assert {name: {key: served[name][key] for key in values} for name, values in frozen.items()} == frozen
    assert list(served) == list(frozen)


def test_a_protocol_has_all_of_its_alternative_with_what_its_server_needs() -> None:
    known = protocols.load()
    cold, warm = require_served([known["deployed-cold"], known["deployed-warm"]])
    (quic,) = require_served([known["quic"]])
    assert cold.alternative_service == quic and warm.alternative_service == quic
    assert cold.http_versions == ("h2", "h3") and known["tcp+"].http_versions == ("h2",)
    assert known["tcp+"].alternative_service is None
    assert [server_of(one).name for one in cold.services] == ["nginx", "quic_server"]


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ('like = "tcp+"\nalternative = "quic"', "give alternative and discovery together"),
        ('like = "tcp+"\ndiscovery = "alt-svc"', "give alternative and discovery together"),
        (
            'like = "tcp+"\nalternative = "quic"\ndiscovery = "dns"',
            "one of alt-svc, visit-before, https-record, not 'dns'",
        ),
        ('like = "quic"\nalternative = "quic"\ndiscovery = "alt-svc"', "alternative is for transport tcp"),
        ('like = "tcp+"\nalternative = "none"\ndiscovery = "alt-svc"', "must be a protocol of transport quic"),
        ('like = "tcp+"\nalternative = "tcp"\ndiscovery = "alt-svc"', "must be a protocol of transport quic"),
        ('like = "tcp+"\nalternative = "quic+0rtt"\ndiscovery = "alt-svc"', "must be a protocol of transport quic"),
        ('like = "deployed-cold"\nknown_servers = true', "neither early_data nor known_servers"),
    ],
)
def test_an_alternative_that_cannot_be_is_refused(lines: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "protocols.toml"
    file.write_text(f"[x]\n{lines}\n")
    with pytest.raises(EyelevelError, match=fault):
        protocols.load(file)


def test_a_server_that_cannot_say_so_has_no_alternative(tmp_path: Path) -> None:
    file = tmp_path / "protocols.toml"
    file.write_text('[x]\nlike = "deployed-cold"\nserver = "caddy"\n')
    with pytest.raises(EyelevelError, match="caddy cannot announce an alternative"):
        require_served([replace(protocols.load(file)["x"], pacing=False)])


def test_a_setting_builds_on_another_also_of_the_testbed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(USER_FOLDER, str(tmp_path))
    (tmp_path / "protocols.toml").write_text(
        '[home]\nlike = "tcp+bbr"\npacing = false\n[home.server_sysctls]\n"net.ipv4.tcp_wmem" = "1 2 3"\n'
        '[home2]\nlike = "home"\ninitial_window_packets = [4, 8]\n'
    )
    known = protocols.load()
    base, home = known["tcp+bbr"], known["home"]
    sysctls = {**base.server_sysctls, "net.ipv4.tcp_wmem": "1 2 3"}
    assert home == replace(base, name="home", pacing=False, server_sysctls=sysctls)
    members = [protocol.initial_window_packets for protocol in choose("protocol", "home2", known)]
    assert members == [4, 8]


def test_a_grid_builds_on_another(tmp_path: Path) -> None:
    file = tmp_path / "networks.toml"
    file.write_text('[g]\nlike = "longlook"\nmin_rtt_ms = 12\nloss = 0\n[h]\nlike = "g"\nup_mbps = 1\ndown_mbps = 2\n')
    networks_of_g = choose("network", "g", networks.load(file))
    assert [network.down_mbps for network in networks_of_g] == [5, 10, 50, 100]
    assert (networks.load(file)["h"].up_mbps, networks.load(file)["h"].down_mbps) == (1, 2)


def test_a_table_with_lists_is_a_network_for_each_combination(tmp_path: Path) -> None:
    file = tmp_path / "networks.toml"
    file.write_text('[g]\n"up_mbps, down_mbps" = [1, 2]\nmin_rtt_ms = [10, 0.5]\nloss = 0.1\nqueue_ms = 100\n')
    grid = networks.load(file)
    described = {n.name: (n.up_mbps, n.down_mbps, n.min_rtt_ms, n.loss) for n in choose("network", "g", grid)}
    assert described == {
        "g-1mbps-10ms": (1, 1, 10, 0.1),
        "g-1mbps-0.5ms": (1, 1, 0.5, 0.1),
        "g-2mbps-10ms": (2, 2, 10, 0.1),
        "g-2mbps-0.5ms": (2, 2, 0.5, 0.1),
    }


def test_a_trace_gives_a_network_its_mean_rate_and_is_known_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "t.down").write_text("0\n4\n4\n12\n")
    file = tmp_path / "networks.toml"
    file.write_text("[t]\nmin_rtt_ms = 10\nup_mbps = 1\ndown_trace = 't.down'\nqueue_ms = 100\n")
    traced = networks.load(file)["t"]
    assert traced.down_mbps == pytest.approx(4 * 1504 * 8 / 0.012 / 1e6)
    assert traced.down_trace_sha256 == hashlib.sha256((tmp_path / "t.down").read_bytes()).hexdigest()
    assert str(tmp_path / "t.down") in map(str, shell(traced))


def test_settings_of_ones_own_join_the_others_and_may_not_take_their_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(USER_FOLDER, str(tmp_path))
    with pytest.raises(EyelevelError, match=r"none of networks\.toml, protocols\.toml, devices\.toml"):
        networks.load()
    (tmp_path / "networks.toml").write_text(f"[home]\n{NETWORK}")
    assert networks.load()["home"].queue_ms == 100
    assert "home" not in networks.load().groups["all"]
    (tmp_path / "networks.toml").write_text(f"[lte]\n{NETWORK}")
    with pytest.raises(EyelevelError, match=r"already a \[lte\]"):
        networks.load()


def test_choosing_takes_lists_and_all_and_names_what_is_allowed() -> None:
    known = {"a": 1, "b": 2, "c": 3}
    assert choose("letter", "b,a", known) == [2, 1]
    assert choose("letter", "b a b", known) == [2, 1]
    assert choose("letter", "all", known) == [1, 2, 3]
    with pytest.raises(EyelevelError, match="unknown letter 'z': there are a, b, c, all"):
        choose("letter", "a,z", known)
    with pytest.raises(EyelevelError, match="no letter"):
        choose("letter", " ", known)


def test_a_setting_the_kernel_does_not_have_stops() -> None:
    with pytest.raises(EyelevelError, match=r"net\.ipv4\.no_such_thing"):
        kernel.apply_sysctls({"net.ipv4.no_such_thing": "1"})


@pytest.mark.needs_namespaces
def test_a_congestion_control_that_is_not_loaded_is_told_with_the_command_that_loads_it() -> None:
    """BBR on Debian is not loaded for ordinary users. The test names a congestion control that no kernel has, since
    this kernel may have all others."""
    program = (
        "from dataclasses import replace; from tuning import kernel, protocols; "
        "kernel.tune_server_routes('lo', replace(protocols.load()['tcp+bbr'], congestion_control='nonesuch'))"
    )
    prepare = 'ip link set lo up && ip route add 192.0.2.0/24 dev lo && exec "$@"'
    command = [*namespaced("net"), "sh", "-c", prepare, "sh", sys.executable, "-c", program]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    message = done.stderr.strip().splitlines()[-1]
    assert "tcp+bbr needs the congestion control nonesuch, which this kernel does not have or has not loaded" in message
    assert message.endswith("with: sudo modprobe tcp_nonesuch")


def test_a_congestion_control_that_the_kernel_lacks_is_refused_with_those_that_it_has() -> None:
    known = protocols.load()
    # A QUIC server does not use the kernel's.
    kernel.require_congestion_controls([known["tcp"], replace(known["quic+bbr"], congestion_control="nonesuch")])
    with pytest.raises(
        EyelevelError, match=r"^x needs the congestion .* has not loaded; it has [^;]*\breno\b[^;]*; load"
    ):
        kernel.require_congestion_controls([replace(known["tcp"], name="x", congestion_control="nonesuch")])


def test_drops_and_repairs_reach_the_shell(tmp_path: Path) -> None:
    file = tmp_path / "networks.toml"
    file.write_text(
        f"[d]\n{NETWORK}drop_up_packets = [7, 2]\ndrop_down_packets = [120]\n"
        "drop_up_at_ms = [0, 1500.25]\ndrop_down_at_ms = [3]\n"
        '[r]\nlike = "da2gc"\nretransmit_ms = 60\n'
        '[none]\nlike = "d"\ndrop_up_packets = []\ndrop_down_packets = []\ndrop_up_at_ms = []\ndrop_down_at_ms = []\n'
    )
    loaded = networks.load(file)
    words = shell(loaded["d"])
    dropped = ["--drop-up-packets", "7,2", "--drop-down-packets", "120"]
    assert words[-8:] == [*dropped, "--drop-up-at", "0.000000,1500.250000", "--drop-down-at", "3.000000"]
    assert shell(loaded["r"])[-2:] == ["--retransmit", "60.000000"]
    assert shell(loaded["r"])[:-2] == shell(networks.load()["da2gc"])
    assert not any(str(word).startswith("--drop") for word in shell(loaded["none"]))
    # TCP is slowed less by losses that the link repairs than by other losses.
    assert loaded["r"].tcp_rate_bps() > networks.load()["da2gc"].tcp_rate_bps()
    for network in loaded.values():
        assert from_json(to_json(network), type(network), "the network") == network


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        ("caddy-h3", {"congestion_control": "bbr"}, "caddy's QUIC has no bbr, only reno"),
        ("caddy-h3", {"congestion_control": "cubic"}, "caddy's QUIC has no cubic, only reno"),
        ("caddy-h3", {"congestion_control": "bbr2"}, "caddy's QUIC has no bbr2, only reno"),
        ("caddy-h3", {"initial_window_packets": 10}, "the initial window of caddy's QUIC is 32 packets"),
        ("caddy-h3", {"pacing": False}, "pacing of caddy's QUIC is true"),
        ("caddy-h3", {"scheduler": "urgency"}, "scheduler is not for caddy"),
        ("caddy-h3", {"emulated_connections": 1}, "emulated_connections is not for caddy"),
        ("caddy-h3", {"max_window_packets": 100}, "max_window_packets is not for caddy"),
        ("caddy-h3", {"connection_options": ("NCMR",)}, "caddy's QUIC ignores connection_options"),
        ("caddy-h3", {"early_data": True}, "caddy takes no early data"),
        ("caddy-h2", {"early_data": True}, "caddy takes no early data"),
        ("caddy-h2", {"tls_record_bytes": 4096}, "tls_record_bytes is not for caddy"),
    ],
)
def test_caddy_refuses_what_it_cannot_do(name: str, changes: dict[str, Any], reason: str) -> None:
    protocol = replace(protocols.load()[name], **changes)
    refusal = server_of(protocol).refusal(protocol)
    assert refusal and refusal.startswith(reason)


def test_caddy_takes_over_tcp_what_the_kernel_does() -> None:
    for changes in ({"congestion_control": "bbr"}, {"initial_window_packets": 10}, {"pacing": False}):
        protocol = replace(protocols.load()["caddy-h2"], **changes)
        assert server_of(protocol).refusal(protocol) is None


def test_caddys_quic_is_refused_on_a_fast_uplink_only() -> None:
    known = protocols.load()
    for name, network in networks.load().items():
        fast = network.up_mbps is None or network.up_mbps > 10 or network.up_trace is not None
        assert (server_of(known["caddy-h3"]).network_refusal(known["caddy-h3"], network) is not None) == fast, name
        assert server_of(known["caddy-h2"]).network_refusal(known["caddy-h2"], network) is None
    with pytest.raises(EyelevelError, match=r"^caddy-h3: caddy's QUIC can lose half of a browser's ClientHello"):
        require_served_on(networks.Network("n", 10), known["caddy-h3"])
