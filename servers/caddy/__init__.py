"""Caddy as a server of recorded sites, over HTTP/2 and over HTTP/3."""

from servers.caddy.server import Caddy

SERVER = Caddy()
