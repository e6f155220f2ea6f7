"""Secret key rotation: moves stored data to the newest key while the platform runs."""
