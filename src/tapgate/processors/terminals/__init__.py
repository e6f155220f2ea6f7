"""Terminals: a processor's devices at the counter, each with a signing key of its own."""
