"""One-time codes sent to phones, and the limit on codes per phone number."""
