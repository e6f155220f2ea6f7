UPDATE agents SET phone_number_changed_at = '2026-03-06 09:00Z'
WHERE id = (SELECT min(id) FROM agents);
