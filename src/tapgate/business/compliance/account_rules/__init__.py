"""Account rules: balance and spending limits for each KYC level."""
