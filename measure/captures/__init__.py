"""Packet captures: dumpcap writes them (`recording`), tshark reads them (`reading`)."""
