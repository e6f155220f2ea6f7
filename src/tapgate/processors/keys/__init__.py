"""The signing keys of a processor and its terminals: added and taken back, to be rotated."""
