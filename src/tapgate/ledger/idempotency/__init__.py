"""Idempotency keys and replays."""
