UPDATE request_logs SET idempotency_key = 'order-1', transaction_id = 1;
