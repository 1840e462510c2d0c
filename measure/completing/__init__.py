"""Completing recordings, by loads of them in replay."""
