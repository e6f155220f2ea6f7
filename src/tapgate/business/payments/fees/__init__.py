"""Fee rules and commission rules: what transactions cost, and what agents earn."""
