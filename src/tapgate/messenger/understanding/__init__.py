"""What free text means."""
