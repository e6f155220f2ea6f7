"""Transfers between customers of different books: installations that know each other."""
