"""Rotation of the secret key: moves stored data to the newest key while the platform runs."""
