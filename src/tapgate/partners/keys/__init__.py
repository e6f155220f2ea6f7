"""Signing keys of partners."""
