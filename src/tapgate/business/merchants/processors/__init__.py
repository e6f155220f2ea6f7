"""Processors: merchants and payment companies, with their terminals and signing keys."""
