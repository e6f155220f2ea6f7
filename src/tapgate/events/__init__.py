"""What is written together with a change: audit entries, webhook events, notifications."""
