"""Admins: accounts, sessions, API keys and the audit log."""
