"""The names of the files in the folder of a captured load (`studies.packets`)."""

STUDY = "packets"
CLIENT, SERVERS, KEYS = "client.pcapng", "servers.pcapng", "ssl-keys.log"
PING, PING_OUTPUT = "ping.json", "ping.txt"
