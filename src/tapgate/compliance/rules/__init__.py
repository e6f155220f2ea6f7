"""Compliance rules: what is watched in the payments of subscribers, and what is done about it."""
