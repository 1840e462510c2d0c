"""Qualities, players and rules of the study's pages, and the usual options of its command."""

NETWORKS, PROTOCOLS, VIDEOS, PLAYER, SECONDS = "lte", "tcp+,quic", "tiny,medium,hd720,hd2160,dynamic", "dash", 60

# In bit/s, by the names that YouTube's player had, which Kakhki et al. chose four of. The ladder is from theirs at the
# time (0.24 Mbit/s) to what 4K takes today (16 Mbit/s).
LADDER_BPS = {
    "least": 240_000,
    "tiny": 700_000,
    "small": 1_200_000,
    "medium": 2_500_000,
    "hd720": 5_000_000,
    "hd1080": 8_000_000,
    "hd2160": 16_000_000,
}
# As hd720, but its pictures are true ones of 1280x720: whether they make a difference to what is measured.
TRUE = "hd720-true"
# How players choose: dash.js has all three rules (BOLA: Spiteri et al., INFOCOM 2016), hls.js one.
RULES = {"throughput": ("dash", "hls"), "bola": ("dash",), "dynamic": ("dash",)}
# Where npm has put each player (package.json), below `node_modules`.
PLAYERS = {"dash": ("dashjs", "dist/modern/umd/dash.mediaplayer.min.js"), "hls": ("hls.js", "dist/hls.min.js")}
