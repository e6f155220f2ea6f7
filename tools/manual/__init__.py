"""Generates docs/api and docs/access.md from the endpoint declarations: `make docs`."""
