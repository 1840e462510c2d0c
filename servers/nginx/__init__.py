"""NGINX as a server of recorded sites."""

from servers.nginx.server import Nginx

SERVER = Nginx()
