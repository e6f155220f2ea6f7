UPDATE deliveries SET attempt_log = '[{"number": 1, "status": 500}]'
WHERE id = (SELECT min(id) FROM deliveries);
