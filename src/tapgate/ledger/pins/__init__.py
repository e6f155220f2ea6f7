"""PINs of subscribers, child cards and agents: hashing, strength, storage and lockout."""
