"""Fixtures for portal tests."""

from sites.console.conftest import console_clients

__all__ = ["console_clients"]
