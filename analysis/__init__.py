"""What a campaign's table says: functions from a table to a table, and the commands that print them."""
