"""From a campaign's folder to its report: all tables and figures, and one page that explains them."""
