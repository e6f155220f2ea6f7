"""API keys, which admins create, update, rotate and delete."""
