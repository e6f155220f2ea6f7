"""Compliance: the rules that are watched by, the alerts they raise, and the limits of accounts."""
