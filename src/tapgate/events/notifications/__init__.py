"""Messages and receipts to phones: durable queues and their workers."""
