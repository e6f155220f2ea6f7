"""Support requests: conversations between customers and support staff."""
