"""The one place where things are kept: PostgreSQL, embedded or by URL."""


class StoreError(Exception):
    """Why the store cannot be used, in one line for whoever starts Tapgate."""


class FolderInUseError(StoreError):
    """Another process runs the embedded PostgreSQL of this data folder."""
