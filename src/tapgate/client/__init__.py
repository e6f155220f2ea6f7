"""The typed client of the gateway: what the messenger and every third party call it with."""
