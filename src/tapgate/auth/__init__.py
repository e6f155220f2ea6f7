"""Authentication: API keys, access tokens, signatures, passwords and sessions."""
