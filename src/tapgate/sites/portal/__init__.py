"""Portal: pages for the users of a merchant, partner or agent."""
