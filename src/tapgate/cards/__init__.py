"""Cards: NFC cards that reach a wallet."""
