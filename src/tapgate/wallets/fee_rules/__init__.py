"""Fee rules: the fee for each transaction type, and the side that pays it."""
