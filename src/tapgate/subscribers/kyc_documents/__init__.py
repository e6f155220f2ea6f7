"""KYC documents: pictures that prove who a subscriber is."""
