"""Approval rules, and the people who can satisfy them."""
