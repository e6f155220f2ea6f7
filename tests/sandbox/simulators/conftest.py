"""Signed-in console clients for the tests of the simulators."""

from sites.console.conftest import ada, console_clients, signed_out_client

__all__ = ["ada", "console_clients", "signed_out_client"]
