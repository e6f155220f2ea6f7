"""Administrators: their sessions, each other, and the API keys they give out."""
