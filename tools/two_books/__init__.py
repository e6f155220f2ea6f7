"""Transfers between the books of two installations through clearing accounts: `make two-books`."""
