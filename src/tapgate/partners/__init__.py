"""Partners: companies that fund wallets from outside the platform."""
