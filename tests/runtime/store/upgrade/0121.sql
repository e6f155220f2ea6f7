INSERT INTO bank_statements VALUES
    (1211, 'camt.053', '0099887766', 1192, 'SLE', '2026-03-10', '2026-03-10', 1000, 100, 1, '\x02',
     701, '2026-03-11', '2026-03-11', 'adm_701', 'statement-1', '\x03');
INSERT INTO bank_statement_lines VALUES
    (1212, 1211, '0099887766', '2026-03-10', -900, 'PO0000000000001A', 'Payout', 'unmatched', NULL,
     NULL, false, NULL);
INSERT INTO bank_line_requests VALUES ('adm_701', 'line-1', '\x04', 1212);
INSERT INTO csv_mappings VALUES (1192, '{"date": "Day", "amount": "Sum"}', 701, '2026-03-11');
