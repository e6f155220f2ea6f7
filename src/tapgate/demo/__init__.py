"""Demo data: subscribers, merchants, agents and months of payments, made by real operations."""
