"""The cost of a campaign's report, by the campaign's size."""
