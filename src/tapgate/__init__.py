"""Tapgate: a self-hosted NFC card and wallet payment platform."""

VERSION = "1.0.0"
