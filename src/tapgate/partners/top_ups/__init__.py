"""Top-ups: a partner funds a subscriber through its webhook or through an API request."""
