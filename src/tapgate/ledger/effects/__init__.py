"""What a batch writes besides money: alerts, events, notifications and rollups."""
