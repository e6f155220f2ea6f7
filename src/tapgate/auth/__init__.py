"""Authentication: API keys, access tokens, signatures, passwords, PINs, and one-time codes."""
