"""Alerts: findings about a subscriber, agent or transaction that staff investigate and resolve."""
