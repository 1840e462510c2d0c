"""Studies beside the campaign of pages, on the same replay, shells and gates."""
