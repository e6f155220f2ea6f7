"""Alias of `tapgate.service.node_files`, which the messenger uses as well."""

from tapgate.service.node_files import WorkerFile, allocate, shared_folder

__all__ = ["WorkerFile", "allocate", "shared_folder"]
