"""The signing keys of a partner."""
