"""`demo_origin.py FOLDER PAGE SEED COMMAND…`: a small web with one generated page, which exists while COMMAND runs.

Run it in fresh network and mount namespaces: its servers have addresses on `lo` there, and names in a `/etc/hosts` that
only this process and its children see. PAGE is a demo site, generated from SEED.

It stands in for the live web, so it shares nothing with the servers of replays: NGINX sends plain files by its own
module, without an application, and the kernel's TCP has its default settings, not a protocol's. The exit status is that
of COMMAND.
"""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from base.places import tool
from base.processes import running
from record import demo
from record.site import Recording
from servers.certificates import certify, machine_ca

# Header fields of responses on which the page depends; NGINX makes the others.
KEPT = ("content-encoding", "cache-control", "timing-allow-origin", "vary")
KEPT_PREFIX = "access-control-"
# The ending of a file whose URL has no ending.
PAGE_ENDING = ".html"

NGINX = """
daemon off; worker_processes auto; user root; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{}}
http {{
    access_log off; sendfile on; tcp_nopush on; charset off; default_type text/html;
    include /etc/nginx/mime.types;
    types {{ font/woff2 woff2; application/javascript js; application/json json; }}
    map_hash_max_size 65536; map_hash_bucket_size 2048; types_hash_max_size 4096;
    ssl_certificate_key {key};
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    map "$request_method $host$uri" $alike {{ default /nothing; {alike} }}
    map "$request_method $host$request_uri" $answer {{ default $alike; {exact} }}
{maps}
{servers}
}}
"""
SERVER = """
    server {{
        listen {address}:443 ssl http2; ssl_certificate {chain}; root {folder}/files;
        location / {{
            {fields}
            if ($redirect) {{ return 302 $redirect; }}
            if ($empty) {{ return 204; }}
            error_page 405 =200 $answer;
            rewrite ^ $answer break;
        }}
    }}
"""


def quoted(text: str) -> str:
    """`text` as a word of NGINX's configuration."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def configuration(recording: Recording, folder: Path) -> str:
    """NGINX's configuration for the page; its files are in `folder`."""
    (folder / "files").mkdir()
    hosts: dict[str, dict[str, None]] = defaultdict(dict)
    exact: dict[str, str] = {}
    alike: dict[str, str] = {}
    tables: dict[str, dict[str, str]] = {"redirect": {}, "empty": {}}
    for number, exchange in enumerate(recording.exchanges):
        url, response = urlsplit(exchange.url), exchange.response
        hosts[exchange.recorded_ip].setdefault(url.netloc)
        file = f"/{number:05d}{PurePosixPath(url.path).suffix or PAGE_ENDING}"
        (folder / "files" / file[1:]).write_bytes(response.body)
        whole = f"{url.path or '/'}{'?' if url.query else ''}{url.query}"
        exact.setdefault(f"{exchange.method} {url.netloc}{whole}", file)
        alike.setdefault(f"{exchange.method} {url.netloc}{url.path or '/'}", file)
        if location := response.header("location"):
            tables["redirect"][file] = location
        if response.status == 204:
            tables["empty"][file] = "1"
        for name, value in response.headers:
            if name.lower() in KEPT or name.lower().startswith(KEPT_PREFIX):
                tables.setdefault(name.lower(), {})[file] = value
    certificates = certify(machine_ca(), {address: tuple(names) for address, names in hosts.items()}, folder)
    names = {name: name.replace("-", "_") for name in tables}
    maps = "\n".join(f"    map $answer ${names[name]} {{ {pairs(table)} }}" for name, table in tables.items())
    fields = " ".join(
        f"add_header {name} ${names[name]} always;" for name in tables if name not in ("redirect", "empty")
    )
    return NGINX.format(
        folder=folder,
        key=next(iter(certificates.values())).key,
        alike=pairs(alike),
        exact=pairs(exact),
        maps=maps,
        servers="".join(
            SERVER.format(address=address, chain=certificates[address].chain, folder=folder, fields=fields)
            for address in hosts
        ),
    )


def pairs(table: dict[str, str]) -> str:
    """The lines of a map of NGINX's."""
    return " ".join(f"{quoted(key)} {quoted(value)};" for key, value in table.items())


def make_network(recording: Recording, folder: Path) -> None:
    """Add the page's addresses to this namespace, and its names to this process."""
    servers = {(urlsplit(exchange.url).hostname, exchange.recorded_ip) for exchange in recording.exchanges}
    lines = ["127.0.0.1 localhost", *(f"{address} {host}" for host, address in sorted(servers, key=str))]
    (folder / "hosts").write_text("\n".join(lines) + "\n")
    addresses = sorted({address for _, address in servers})
    commands = ["link set lo up", *(f"address add {address}/32 dev lo" for address in addresses)]
    subprocess.run([tool("ip"), "-batch", "-"], input="\n".join(commands), text=True, check=True)
    subprocess.run([tool("mount"), "--bind", folder / "hosts", "/etc/hosts"], check=True)


def main(folder: Path, page: str, seed: int, command: list[str]) -> int:
    recording = demo.generate(page, seed)
    make_network(recording, folder)
    (folder / "nginx.conf").write_text(configuration(recording, folder))
    nginx: list[str | Path] = [tool("nginx"), "-c", folder / "nginx.conf", "-p", folder]
    with running("nginx", nginx, folder / "nginx.out"):
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
