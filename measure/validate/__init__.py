"""Whether networks and protocols are what their settings say: measured, not assumed (`make validate`)."""
