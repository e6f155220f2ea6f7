"""Payment cards of subscribers and their children."""
