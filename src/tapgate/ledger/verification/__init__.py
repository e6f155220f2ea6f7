"""Proof that the books are correct, from entries alone: shares no code with what writes them."""
