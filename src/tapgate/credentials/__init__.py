"""Who is calling: keys, tokens, signatures, PINs, and the vault that protects them."""
