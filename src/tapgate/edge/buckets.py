"""Alias of `tapgate.service.buckets`, which the messenger uses as well."""

from tapgate.service.buckets import SECOND, CacheAwayError, NodeBuckets, Rate, Taken

__all__ = ["SECOND", "CacheAwayError", "NodeBuckets", "Rate", "Taken"]
