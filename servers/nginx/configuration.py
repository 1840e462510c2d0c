"""NGINX's configuration in front of the replaying uWSGI application: one server block per server address.

It is no template of Jinja, which would take longer to load than NGINX to start.
"""

import os
from collections import defaultdict
from pathlib import Path

from servers.application import uwsgi
from servers.contract import BUFFERS, Serving

# The most connections of a browser at a time: Chromium makes up to 256, and as many WebSockets. Each possible
# connection takes 0.4 kB in each worker.
BROWSER_CONNECTIONS = 1000

ALTERNATIVE = """
    # RFC 7838. The announcement is valid for a day, as those of servers on the web are.
    add_header Alt-Svc 'h3=":$server_port"; ma=86400' always;
"""


def configuration(serving: Serving, application: Path) -> str:
    """The text of NGINX's configuration file for `serving`, with the socket of the `application`."""
    folder, buffers, protocol = serving.folder, serving.folder / BUFFERS, serving.protocol
    # NGINX's default would be one worker for each core of the machine, though servers may use only a few of them.
    workers = len(os.sched_getaffinity(0))
    connections = len(serving.listening()) + BROWSER_CONNECTIONS + uwsgi.most_connections(serving)
    records = f"    ssl_buffer_size {protocol.tls_record_bytes};\n" if protocol.tls_record_bytes else ""
    early_data = "on" if protocol.early_data else "off"
    alternative = ALTERNATIVE if protocol.announces_alternative else ""
    servers = _servers(serving, application)
    return f"""\
daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log stderr warn;

events {{
    worker_connections {connections};
}}

http {{
    access_log off;
    default_type "";
    types {{}}

    # The same as in quic_server: one group for the key exchange, resumption only for returning browsers, the number
    # of streams, and connections that stay open while a page loads.
    ssl_protocols TLSv1.3;
    ssl_ecdh_curve {protocol.tls_group};
{records}    ssl_session_cache off;
    ssl_session_tickets {early_data};
    ssl_early_data {early_data};
    http2_max_concurrent_streams 100;
    keepalive_timeout 600s;
    keepalive_requests 1000000;
    send_timeout 600s;

    # Recorded requests and headers may be of any size.
    client_max_body_size 0;
    client_body_temp_path {buffers}/requests;
    large_client_header_buffers 8 128k;

    # Responses are read from uWSGI at once, even if the client is slow, so that no response waits for another.
    uwsgi_buffer_size 128k;
    uwsgi_buffers 512 32k;
    uwsgi_busy_buffers_size 256k;
    uwsgi_temp_path {buffers}/responses;
    # NGINX creates these folders when it starts, although nothing uses them.
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    scgi_temp_path {folder}/scgi;
    uwsgi_read_timeout 600s;
    uwsgi_ignore_headers X-Accel-Redirect X-Accel-Expires X-Accel-Limit-Rate X-Accel-Buffering X-Accel-Charset
                         Expires Cache-Control Set-Cookie Vary;
    uwsgi_pass_header X-Accel-Redirect;
    uwsgi_pass_header X-Accel-Expires;
    uwsgi_pass_header X-Accel-Limit-Rate;
    uwsgi_pass_header X-Accel-Buffering;
    uwsgi_pass_header X-Accel-Charset;
    uwsgi_intercept_errors off;

    # Only the parameters that the application reads: the URI already contains path and query, and all parameters
    # together must fit into the 64 KiB of a uWSGI packet. The application does not need a request's body; it only
    # needs to know that the whole body has arrived.
    uwsgi_pass_request_body off;
    uwsgi_param REQUEST_METHOD $request_method;
    uwsgi_param REQUEST_URI $request_uri;
{alternative}{servers}}}
"""


def _servers(serving: Serving, application: Path) -> str:
    listening: dict[str, list[int]] = defaultdict(list)
    for address, port in serving.listening():
        listening[address].append(port)
    text = ""
    for address, ports in listening.items():
        kind, certificate = "ssl" if address in serving.http1 else "ssl http2", serving.certificates[address]
        listens = "".join(f"        listen {address}:{port} {kind};\n" for port in ports)
        text += f"""\
    server {{
{listens}\
        ssl_certificate {certificate.chain};
        ssl_certificate_key {certificate.key};
        location / {{
            uwsgi_pass unix:{application};
        }}
    }}
"""
    return text
