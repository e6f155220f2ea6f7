"""Agents: people who exchange cash for electronic money, backed by a float."""
