"""Fee rules: what a transaction costs, and whom."""
