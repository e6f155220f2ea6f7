"""Consolidated report over several books."""
