"""Fee rules: the fee for each transaction type, and whether the sender or the receiver pays it."""
