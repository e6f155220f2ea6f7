"""What partners, processors and agents share: tables, lists, status changes and signing keys."""
