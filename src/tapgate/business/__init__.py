"""What the platform does for customers, merchants, agents, partners and staff."""
