"""Admin console: server-rendered pages on top of the API's operations."""
