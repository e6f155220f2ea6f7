"""Alias of `tapgate.service.throttle`, which the messenger uses as well."""

from tapgate.service.throttle import Throttle

__all__ = ["Throttle"]
