"""Webhooks out: who wants to be told what happens here, and how they are told."""
