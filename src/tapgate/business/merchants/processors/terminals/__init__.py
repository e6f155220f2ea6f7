"""Terminals: point-of-sale devices of a processor, each with its own signing keys."""
