"""Proofs of cards that sign every tap: cryptography, issuer keys and verification."""
