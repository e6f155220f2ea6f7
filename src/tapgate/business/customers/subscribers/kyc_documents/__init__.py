"""KYC documents: images that prove a subscriber's identity."""
