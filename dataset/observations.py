"""Names and thresholds for reading a validation's observations of protocols (`ValidationEntry.seen`).

`measure.validate`, which makes the observations, uses the same names and thresholds.
"""

# Two observations on which a comparison depends although no setting of a protocol determines them: the server's answer
# to one loss, and the order in which it sends.
LOSS_RESPONSE, ORDER_OF_SERVICE = "loss_response", "order_of_service"
# Names of server choices in `campaign.json` (`server_choices`).
ANSWER_TO_LOSS, ORDER = "answer to a loss", "order of service"

# The round-trip time of the network on which flights are observed: long enough to show which packets are sent within
# one round trip.
CLEAR_RTT_MS = 100.0
# QUIC sends while fewer bytes than the window are in flight, so it may exceed the window by one packet.
FLIGHT_TOLERANCE_PACKETS = 1.5
# Even a paced sender sends the first packets at once, and the rest at a rate of two windows per round trip. So the
# other 22 packets of a window of 32 take a third of a round trip.
BURST_PACKETS = 10
PACED_SHARE, UNPACED_SHARE = 0.15, 0.05
# Tolerance for the browser's own work before its first request, in round trips.
REQUEST_TOLERANCE_RTT = 0.5
# Pictures on the page with which validation measures flights.
PICTURES = 8

# The tolerance for the share of the window that is kept after one loss.
KEPT_TOLERANCE = 0.02

# The responses on the page of the order of service: one that nobody waits for, and an urgent one.
BACKGROUND, URGENT = "/background", "/urgent"
# The rate of that page's network (Mbit/s); and the time that a server may take to fetch a response and to react to its
# priority. NGINX requests the response from another program, and a busy machine delays both.
NARROW_MBPS = 8.0
ANSWER_S = 0.1
# The number of bytes that the link carries in that time.
ANSWER_BYTES = int(ANSWER_S * NARROW_MBPS * 1e6 / 8)
# The largest share of bytes that a strict server may have sent, or queued in the kernel, before the urgent request.
MOST_AGAINST_PRIORITY = 0.05
# Two responses that take turns of 16 kB are under way at the same time for 5 sixths of their 100 kB; responses that do
# not take turns never are.
TURNS, ONE_AFTER_ANOTHER = (0.5, 1.0), (0.0, 0.1)
