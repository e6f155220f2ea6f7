-- Credentials that were rotated, and an API key with limits of its own.
UPDATE api_keys SET rate_limit = 5, burst = 10, allowed_ips = '{203.0.113.0/24}',
                    last_used_at = '2026-03-02', previous_key_hash = '\x06',
                    previous_until = '2026-03-03' WHERE id = 721;
UPDATE partners SET previous_webhook_secret = 'sealed',
                    previous_webhook_secret_until = '2026-03-03' WHERE id = 501;
