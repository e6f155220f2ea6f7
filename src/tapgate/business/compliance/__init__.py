"""Compliance: screening rules, alerts, compliance checks and account limits."""
