"""The usual options of the study, for its command and for its measurement."""

NETWORKS, PROTOCOLS, VIDEOS, PLAYER, SECONDS = "lte", "tcp+,quic", "tiny,medium,hd720,hd2160,dynamic", "dash", 60
