"""API keys, which system admins create, update, rotate and delete."""
