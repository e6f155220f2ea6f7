"""Processors: merchants, with their terminals and signing keys."""
