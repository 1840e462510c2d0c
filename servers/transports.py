"""Which server speaks which transport. A new one is a file beside this and a line in it."""

from servers import quic, tcp
from servers.contract import Server

SERVERS: dict[str, Server] = {"tcp": tcp.serve, "quic": quic.serve}
