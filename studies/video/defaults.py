"""Qualities, players and rules of the study's pages, and the default options of its command."""

NETWORKS, PROTOCOLS, VIDEOS, PLAYER, SECONDS = "lte", "tcp+,quic", "tiny,medium,hd720,hd2160,dynamic", "dash", 60

# Rates in bit/s, by the names of YouTube's player; Kakhki et al. chose four of these names. The ladder extends from
# their lowest rate (0.24 Mbit/s) to the rate of 4K today (16 Mbit/s).
LADDER_BPS = {
    "least": 240_000,
    "tiny": 700_000,
    "small": 1_200_000,
    "medium": 2_500_000,
    "hd720": 5_000_000,
    "hd1080": 8_000_000,
    "hd2160": 16_000_000,
}
# The same as hd720, but with true pictures of 1280x720, to show whether the pictures influence the measurement.
TRUE = "hd720-true"
# How players choose a quality: dash.js has all three rules (BOLA: Spiteri et al., INFOCOM 2016), hls.js one.
RULES = {"throughput": ("dash", "hls"), "bola": ("dash",), "dynamic": ("dash",)}
# Where npm has installed each player (package.json), below `node_modules`.
PLAYERS = {"dash": ("dashjs", "dist/modern/umd/dash.mediaplayer.min.js"), "hls": ("hls.js", "dist/hls.min.js")}
