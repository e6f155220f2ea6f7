"""What people are told, written together with what it tells."""
