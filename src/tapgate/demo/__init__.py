"""Demo data: subscribers, merchants, agents and months of payments, created by the platform."""
