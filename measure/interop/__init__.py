"""Tests whether servers and browsers understand each other, by small tests that pass or fail."""
