"""Networks and protocols as data, and how a protocol's settings are applied to the kernel."""
