"""PINs for subscribers, child cards and agents: hashing, strength, storage and lockout."""
