INSERT INTO compliance_rules (id, name, type, subject, transaction_types, threshold, window_seconds,
                              action, severity)
VALUES (1103, 'Busy', 'TRANSACTION_COUNT', 'agent', '{agent_cashin}', 10, 3600, 'alert', 'LOW');
INSERT INTO alerts (id, agent_id, rule_id, alert_type, details, created_at, updated_at)
VALUES (1119, 301, 1103, 'TRANSACTION_COUNT', '{}', '2026-03-03', '2026-03-03');
