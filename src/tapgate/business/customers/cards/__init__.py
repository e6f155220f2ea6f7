"""Payment cards: a subscriber's own cards and child cards."""
