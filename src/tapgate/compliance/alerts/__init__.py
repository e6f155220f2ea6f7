"""Alerts: findings about a subscriber or transaction that staff investigate and resolve."""
