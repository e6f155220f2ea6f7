"""Agents: people who take and hand out cash against a float."""
