UPDATE deliveries SET status = 'pending', next_attempt_at = '2026-03-04', ended_at = NULL,
                      attempts_before = attempts
WHERE status = 'failed';
