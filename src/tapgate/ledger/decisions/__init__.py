"""Decisions on commands: pure functions over the state that was loaded for a batch."""
