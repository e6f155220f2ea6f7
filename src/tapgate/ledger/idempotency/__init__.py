"""Idempotency keys: which requests are replays, which are conflicts, and replay counts."""
