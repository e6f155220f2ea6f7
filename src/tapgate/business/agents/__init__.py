"""Agents: people and businesses that exchange cash and wallet money, using a prepaid float."""
