"""From a campaign's folder to its report: all tables and figures, and the pages that explain them."""
