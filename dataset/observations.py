"""Numbers and names by which what a validation has seen of protocols is read (`ValidationEntry.seen`).

Those that measure it use the same (`measure.validate`).
"""

# Two observations that no setting of a protocol says, but which a comparison depends on: its answer to one loss, and
# the order in which its server sends.
LOSS_RESPONSE, ORDER_OF_SERVICE = "loss_response", "order_of_service"
# What servers decide on, as `server_choices` in `campaign.json` names it.
ANSWER_TO_LOSS, ORDER = "answer to a loss", "order of service"

# The round-trip time of the network in which flights are looked at: long enough to see what is sent within one.
CLEAR_RTT_MS = 100.0
# QUIC sends while less than the window is in flight, so one packet more.
FLIGHT_TOLERANCE_PACKETS = 1.5
# The first packets go out at once however paced, the rest over a third of a round trip at twice the window in each.
BURST_PACKETS = 10
PACED_SHARE, UNPACED_SHARE = 0.15, 0.05
# What a browser does between its first packet and its first request, in round trips.
REQUEST_TOLERANCE_RTT = 0.5
# How many pictures the page of that load has.
PICTURES = 8

# By how much the share of the window that is kept after one loss may be off.
KEPT_TOLERANCE = 0.02

# The page of the order of service: a response that nobody waits for, and one that is urgent.
BACKGROUND, URGENT = "/background", "/urgent"
# The rate of its network; and until a server that has got a request has the response, and has sent what it could not
# know better before. NGINX asks another program; a busy machine lets both wait.
NARROW_MBPS = 8.0
ANSWER_S = 0.1
# What the link takes meanwhile.
ANSWER_BYTES = int(ANSWER_S * NARROW_MBPS * 1e6 / 8)
# A strict server may have sent, or let wait in the kernel, so much of its bytes before it knew better.
MOST_AGAINST_PRIORITY = 0.05
# Two responses that take turns of 16 kB are under way at once for 5 sixths of their 100 kB; those that do not, never.
TURNS, ONE_AFTER_ANOTHER = (0.5, 1.0), (0.0, 0.1)
