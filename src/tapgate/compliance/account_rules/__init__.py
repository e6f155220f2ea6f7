"""Account rules: what a subscriber of each KYC level may hold and send."""
