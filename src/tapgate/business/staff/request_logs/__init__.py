"""Request log for API keys and signing keys, for integrators."""
