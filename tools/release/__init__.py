"""Builds a release from the current commit: packages, checksums, a bill of materials and notes."""


class ReleaseError(Exception):
    """The release cannot be built. The message is for the person who builds it."""
