"""Campaigns: many runs in an order drawn from a seed. No run is lost, and none is made twice."""
