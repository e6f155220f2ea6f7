"""Processors: merchants, their terminals and their signing keys."""
