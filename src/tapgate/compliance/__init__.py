"""Compliance: screening rules, the alerts that they raise, and account limits."""
