"""Sandbox for development and testing: demo data, simulators and a fake messaging provider."""
