"""Branding: how the platform presents itself to customers and staff."""
