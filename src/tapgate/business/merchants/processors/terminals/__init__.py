"""Terminals: a processor's point-of-sale devices, each with its own signing keys."""
