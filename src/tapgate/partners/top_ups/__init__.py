"""Top-ups: a partner funds a subscriber, by its webhook or by an order in its name."""
