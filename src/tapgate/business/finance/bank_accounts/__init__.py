"""Bank accounts: registration, verification by a second admin, blocking."""
