"""Tapgate: a self-hosted NFC card and wallet payment platform."""

from tapgate_client import VERSION

__all__ = ["VERSION"]
