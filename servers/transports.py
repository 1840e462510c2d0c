"""Which server speaks which transport. A new one is a file beside this and a line in it."""

from servers import nginx, quic_server
from servers.contract import Server

SERVERS: dict[str, Server] = {"tcp": nginx.serve, "quic": quic_server.serve}
