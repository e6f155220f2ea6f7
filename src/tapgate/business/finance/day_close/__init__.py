"""Day close: a signed hash tree over each day's transactions, and inclusion proofs."""
