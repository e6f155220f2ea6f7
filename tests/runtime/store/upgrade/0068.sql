UPDATE alerts SET assignee = (SELECT min(id) FROM admins) WHERE id = (SELECT min(id) FROM alerts);
INSERT INTO kyc_assignments
SELECT (SELECT min(id) FROM subscribers), min(id), '2026-03-06 09:00Z' FROM admins;
