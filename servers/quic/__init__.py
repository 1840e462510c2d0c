"""The QUIC server: C++ around Chromium's QUIC code, and what fetches and builds it."""
