INSERT INTO audit_budgets VALUES ('2026-03-02 12:00Z', 'entries ip:192.0.2.7', 200);
INSERT INTO audit_repeats VALUES (
    '2026-03-02 12:00Z', '\x01',
    '{"refusal": {"event": "admin.login", "resource_type": "admin", "resource_id": "unknown:1",
                  "result": "failure", "reason": "The e-mail or the password is wrong"},
      "source": "ip:192.0.2.7", "actor": {"type": "anonymous", "id": "anonymous"},
      "ip": "192.0.2.7"}',
    40, '2026-03-02 12:10Z', '2026-03-02 12:20Z');
INSERT INTO audit_checkpoint VALUES (true, 0, '\x00', 0, '\x00', '2026-03-02 12:00Z');
