"""Processors, their terminals and payments at terminals."""
