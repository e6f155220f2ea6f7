"""Forms of the channel in which a PIN is entered, encrypted all the way to this service."""
