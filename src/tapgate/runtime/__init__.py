"""Processes and background work: logs, periodic jobs, shared files of a node."""
