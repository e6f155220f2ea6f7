"""Messages and receipts to phones, and webhook events: durable queues and their workers."""
