"""API keys: created, changed, rotated and deleted by admins."""
