"""Card proofs, which sign every tap: cryptography, issuer keys and verification."""
