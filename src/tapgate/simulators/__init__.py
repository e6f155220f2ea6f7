"""A POS terminal and a phone to try the platform with, in development and testing."""
