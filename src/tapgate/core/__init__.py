"""Settings, secrets and values that every other part uses."""
