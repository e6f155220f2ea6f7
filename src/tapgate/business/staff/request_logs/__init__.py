"""Log of requests with API keys and signing keys, for integrators."""
