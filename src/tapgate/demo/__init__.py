"""A country to look at: people, shops, agents and months of payments, all through the platform."""
