"""Messages, receipts and webhook events, each written in the transaction of its change."""
