"""Float requests: agents ask their super-agent or the platform for float."""
