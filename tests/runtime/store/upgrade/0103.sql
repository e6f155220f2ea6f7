UPDATE alerts SET investigation_notes = E'2026-03-08 Ada: called the customer\nBen: waits'
WHERE id = (SELECT min(id) FROM alerts);
