"""People who look at the simulators."""

from console.conftest import ada, stranger, visitors

__all__ = ["ada", "stranger", "visitors"]
