"""The default options of the study, for its command and its measurement."""

NETWORKS, PROTOCOLS, AGAINST, MIXES, SECONDS = "fairness-10mbps", "quic,quic+1con", "tcp+", "1x1", 60.0
# The summary leaves out these first seconds of a run: flows that begin together are in slow start then.
UNSETTLED_S = 5.0
# The shortest run: shares are observed for at least as long as the unsettled time.
LEAST_SECONDS = 2 * UNSETTLED_S
