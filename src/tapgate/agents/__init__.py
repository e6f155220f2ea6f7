"""Agents: people and businesses that exchange cash for wallet money, from a prepaid float."""
