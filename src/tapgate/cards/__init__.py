"""Cards: what subscribers and their children pay with."""
