"""Audit log: a tamper-evident hash chain of events and their actors."""
