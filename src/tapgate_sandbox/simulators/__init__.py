"""Simulators of a POS terminal and a phone, for development and testing."""
