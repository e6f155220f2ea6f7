"""Wiring and processes: the gateway, its installation and the supervisor."""
