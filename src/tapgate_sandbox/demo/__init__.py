"""Demo data: subscribers, merchants, agents and months of transactions."""
