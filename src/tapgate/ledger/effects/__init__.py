"""What a batch writes besides money: events, notifications and rollups."""
