"""Channel forms for PIN entry, encrypted end to end between the form client and this service."""
