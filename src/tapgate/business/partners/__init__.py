"""Partners: companies that fund subscribers' wallets from a clearing account."""
