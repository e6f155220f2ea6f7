INSERT INTO task_runs VALUES ('backup', '2026-03-10', true, '2026-03-10');
