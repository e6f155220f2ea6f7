"""Signed-in console clients for the tests of the simulators."""

from console.conftest import ada, stranger, visitors

__all__ = ["ada", "stranger", "visitors"]
