"""What every process runs on: PostgreSQL, background jobs, logs, nodes."""
