"""Campaigns: many runs, in an order drawn from a seed, none lost and none made twice."""
