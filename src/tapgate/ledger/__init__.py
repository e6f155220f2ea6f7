"""The books, and the only place where money moves."""
