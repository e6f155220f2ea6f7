"""Double-entry ledger: the only code that moves money, with all that is decided under lock."""
