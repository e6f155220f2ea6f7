"""Signing keys of a processor and its terminals.

To rotate a key, create a new key and delete the old one.
"""
