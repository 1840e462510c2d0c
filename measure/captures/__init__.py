"""Captures of packets: written by dumpcap (`recording`), read by tshark (`reading`)."""
