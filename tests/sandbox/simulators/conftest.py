"""Signed-in console clients for simulator tests."""

from sites.console.conftest import ada, console_clients, signed_out_client

__all__ = ["ada", "console_clients", "signed_out_client"]
