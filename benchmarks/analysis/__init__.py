"""What the report of a campaign costs, by the campaign's size."""
