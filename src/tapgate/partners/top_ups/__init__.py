"""Top-ups: a partner funds a subscriber's wallet, by signed webhook or by API request."""
