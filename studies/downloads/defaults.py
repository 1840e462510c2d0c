"""The default options of the study, for its command and its measurement."""

NETWORK = "delay10"  # the paper's network is only a delay
# With full segments, QUIC also differs from TCP in the size of packets; TCP with shorter segments shows how much that
# matters.
PROTOCOLS = "tcp+,tcp+mss1238,quic"
DOWNLOADS = 31
