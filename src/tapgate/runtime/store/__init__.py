"""PostgreSQL storage, either an embedded server or an external one given by URL."""


class StoreError(Exception):
    """A database, its URL or a backup cannot be used. The message is one line for the operator."""


class FolderInUseError(StoreError):
    """Another process runs embedded PostgreSQL on this data folder."""
