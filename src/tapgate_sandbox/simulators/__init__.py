"""POS terminal and phone simulators, for development and testing."""
