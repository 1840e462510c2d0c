"""`origin.py FOLDER COMMAND…`: a small web in a separate network, which exists while COMMAND runs in it.

Run it in fresh network and mount namespaces: its servers have addresses on `lo` there, and names in a `/etc/hosts` that
only this process and its children see. When COMMAND has ended, every exchange of each site in `FOLDER/sites` is
requested once more, directly and over HTTP/1.1; the answers go to `FOLDER/answers.json`. The exit status is that of
COMMAND.
"""

import base64
import gzip
import hashlib
import http.client
import json
import os
import random
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import brotli

from base.places import tool
from base.processes import running
from record.site import Site
from servers.certificates import certify, machine_ca, machine_ca_certificate

WWW, STATIC, API, SOCKET, NOWHERE = (f"192.0.2.{n}" for n in range(1, 6))
HOSTS = {
    "origin.example": WWW,
    "www.origin.example": WWW,
    "static.origin.example": STATIC,
    "api.other.example": API,
    "socket.other.example": SOCKET,
    "nowhere.example": NOWHERE,  # no server listens there
}
SECRETS = ("s3cret-cookie-of-the-server", "s3cret-authorisation", "s3cret-cookie-of-the-page")

PAGE = f"""<!doctype html><title>Origin</title>
<link rel=stylesheet href=https://static.origin.example/style.css>
<script src=https://static.origin.example/code.js></script>
<img src=/photo.png width=60 height=60>
<p style="height: 4000px">A long way down.</p>
<img id=far-down width=60 height=60>
<script>
const api = "https://api.other.example";
async function ask() {{
    document.cookie = "own={SECRETS[2]}";
    await fetch("/clip.bin", {{headers: {{Range: "bytes=1000-2999"}}}});
    await fetch("/photo.png?again", {{headers: {{"If-None-Match": '"an-etag"'}}, cache: "no-store"}});
    await fetch("/missing", {{headers: {{Authorization: "{SECRETS[1]}"}}}});
    await fetch("/nothing");
    await fetch(api + "/simple", {{method: "POST", body: "x"}});
    await fetch(api + "/preflighted", {{method: "PUT", body: "{{}}", headers: {{"Content-Type": "application/json"}}}});
    await fetch("https://nowhere.example/").catch(() => null);
    await fetch("https://socket.other.example/cut").then(response => response.text()).catch(() => null);
    new WebSocket("wss://socket.other.example/talk");
    const reader = (await fetch("https://static.origin.example/stream.txt")).body.getReader();
    await reader.read();
    const began = performance.now();
    while (!(await reader.read()).done);
    await fetch("/streamed?" + (performance.now() - began > 200 ? "slowly" : "at once"));
    await fetch("/" + innerWidth + "x" + innerHeight);
}}
ask();
const image = document.getElementById("far-down");
new IntersectionObserver(([entry]) => entry.isIntersecting && (image.src = "/far-down.png")).observe(image);
</script>
"""

# A page with a banner in a frame of another site, and a form.
CONSENT = """<!doctype html><title>Consent</title>
<iframe id=banner src=https://api.other.example/banner.html></iframe>
<form id=login hidden><input id=user><input id=password type=password><button id=in>In</button></form>
<script>
const get = (id) => document.getElementById(id);
addEventListener("message", ({ data }) => {
    if (data !== "accepted") document.title = JSON.stringify(data);  // what no page should see
    get("banner").remove();
    get("login").hidden = false;
});
get("login").onsubmit = async (event) => {
    event.preventDefault();
    await fetch("/streamed?as=" + encodeURIComponent(get("user").value));
    await fetch("/streamed?" + get("password").value.length, { method: "POST", body: get("password").value });
    get("login").innerHTML = "<img src=/photo.png width=60 height=60>";
};
</script>
"""
BANNER = """<!doctype html><div id=host></div><script>
const tree = document.getElementById("host").attachShadow({ mode: "open" });
tree.innerHTML = "<button class=accept>Accept all</button>";
tree.querySelector("button").onclick = () => parent.postMessage("accepted", "*");
</script>
"""

NGINX = """
daemon off; worker_processes 1; user root; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{}}
http {{
    log_format requests '$request "$http_accept_encoding"';
    access_log {folder}/access.log requests; default_type application/octet-stream;
    types {{ text/html html; text/css css; text/javascript js; text/plain txt; image/png png; }}
    ssl_certificate_key {key};
    client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder};
    uwsgi_temp_path {folder}; scgi_temp_path {folder};
    server {{ listen {www}:80; return 301 https://origin.example$request_uri; }}
    server {{
        listen {www}:443 ssl http2; server_name origin.example; ssl_certificate {folder}/{www}.pem;
        return 302 https://www.origin.example$request_uri;
    }}
    server {{
        listen {www}:443 ssl http2; server_name www.origin.example; ssl_certificate {folder}/{www}.pem;
        root {folder}/www;
        location = / {{
            default_type "text/html; charset=utf-8"; try_files /page.br =404;
            add_header Content-Encoding br;
            add_header Set-Cookie "session={secret}; Path=/; Secure; HttpOnly";
        }}
        location = /photo.png {{ if ($args = again) {{ return 304; }} }}
        location = /nothing {{ return 204; }}
        location = /streamed {{ return 204; }}
        location ~ ^/[0-9]+x[0-9]+$ {{ return 204; }}
    }}
    server {{
        listen {static}:443 ssl; ssl_certificate {folder}/{static}.pem; root {folder}/static;
        gzip_types text/javascript;
        location = /style.css {{ gzip_static always; }}
        location = /code.js {{ gzip on; }}
        location = /stream.txt {{ limit_rate_after 64k; limit_rate 384k; }}
        add_header Access-Control-Allow-Origin *;
    }}
    server {{
        listen {api}:443 ssl http2; ssl_certificate {folder}/{api}.pem; default_type application/json;
        add_header Access-Control-Allow-Origin https://www.origin.example;
        location = /banner.html {{ default_type text/html; root {folder}/api; }}
        location = /simple {{ return 200 '{{"simple": true}}'; }}
        location = /preflighted {{
            add_header Access-Control-Allow-Origin https://www.origin.example;
            add_header Access-Control-Allow-Methods PUT;
            add_header Access-Control-Allow-Headers content-type;
            if ($request_method = OPTIONS) {{ return 204; }}
            return 201 '{{"made": true}}';
        }}
    }}
}}
"""

# Header fields of the page's requests that determine the answers.
EXTRA = {"/clip.bin": {"Range": "bytes=1000-2999"}}


def make_files(folder: Path) -> None:
    """Write the bodies, which are the same in every run."""
    noise = random.Random(4)
    www, static, api = (folder / name for name in ("www", "static", "api"))
    for server in (www, static, api):
        server.mkdir()
    (www / "consent.html").write_text(CONSENT)
    (api / "banner.html").write_text(BANNER)
    (www / "page.br").write_bytes(brotli.compress(PAGE.encode()))
    (www / "clip.bin").write_bytes(noise.randbytes(5000))
    for name in ("photo.png", "far-down.png"):
        (www / name).write_bytes(noise.randbytes(3000))
    (static / "style.css.gz").write_bytes(gzip.compress(b"body { margin: 1em }\n" * 100, mtime=0))
    (static / "code.js").write_text("/* some code */\n" * 3000)
    (static / "stream.txt").write_bytes(base64.b64encode(noise.randbytes(192 << 10)))


def make_network(folder: Path) -> None:
    hosts = folder / "hosts"
    hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in HOSTS.items()))
    lines = ["link set lo up", *(f"address add {address}/32 dev lo" for address in {*HOSTS.values()})]
    subprocess.run([tool("ip"), "-batch", "-"], input="\n".join(lines), text=True, check=True)
    subprocess.run([tool("mount"), "--bind", hosts, "/etc/hosts"], check=True)


def accept_websockets(chain: Path, key: Path) -> None:
    """A server that accepts every WebSocket, and breaks off all other responses halfway."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    listening = socket.create_server((SOCKET, 443))

    def serve() -> None:
        open_for_ever = []
        while True:
            connection = context.wrap_socket(listening.accept()[0], server_side=True)
            open_for_ever.append(connection)
            lines = connection.recv(65536).decode().split("\r\n")
            if lines[0].startswith("GET /cut "):
                allow = "Access-Control-Allow-Origin: *"
                connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n{allow}\r\n\r\nhalf".encode())
                connection.close()
                continue
            nonce = next(line.split(": ")[1] for line in lines if line.lower().startswith("sec-websocket-key"))
            accepted = hashlib.sha1(f"{nonce}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()).digest()
            answer = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
            answer += [f"Sec-WebSocket-Accept: {base64.b64encode(accepted).decode()}", "", ""]
            connection.sendall("\r\n".join(answer).encode())

    threading.Thread(target=serve, daemon=True).start()


def ask(method: str, url: str, user_agent: str) -> dict[str, Any]:
    """The answer of a server to one request sent directly."""
    parts = urlsplit(url)
    context = ssl.create_default_context(cafile=machine_ca_certificate())
    connection = http.client.HTTPSConnection(parts.netloc, context=context)
    headers = {"Accept-Encoding": "br, gzip", "User-Agent": user_agent, **EXTRA.get(parts.path, {})}
    connection.request(method, url[len(f"https://{parts.netloc}") :], headers=headers)
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return {
        "status": response.status,
        "headers": response.getheaders(),
        "body": body.hex(),
    }


def main(folder: Path, command: list[str]) -> int:
    make_files(folder)
    make_network(folder)
    servers: dict[str, tuple[str, ...]] = {}
    for name, address in HOSTS.items():
        servers[address] = (*servers.get(address, ()), name)
    certificates = certify(machine_ca(), servers, folder)
    key = certificates[WWW].key
    config = folder / "nginx.conf"
    config.write_text(NGINX.format(folder=folder, key=key, www=WWW, static=STATIC, api=API, secret=SECRETS[0]))
    accept_websockets(certificates[SOCKET].chain, key)
    with ExitStack() as stack:
        nginx: list[str | Path] = [tool("nginx"), "-c", config, "-p", folder]
        stack.enter_context(running("nginx", nginx, folder / "nginx.out"))
        status = subprocess.run(command, check=False).returncode
        sites = [Site.load(path) for path in (folder / "sites").glob("[!.]*")]
        answers = {site.name: [ask(e.method, e.url, site.user_agent or "") for e in site.exchanges] for site in sites}
        (folder / "answers.json").write_text(json.dumps(answers))
    return status


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
