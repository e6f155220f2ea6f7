INSERT INTO batches VALUES
    (1201, 'Salaries', NULL, 'completed', 1, 1, 0, 1, 0, 900, 900, 'SLE', 701, '2026-03-09',
     '2026-03-10', '2026-03-10', 'adm_701', 'batch-1', '\x01', '\x02', '2026-03-09', 'adm_701',
     NULL, 'adm_701', 'run-1', '\x03', NULL);
INSERT INTO batch_lines VALUES
    (1201, 2, '+23276000202', NULL, '9.00', 900, 'S-1', 202, 'paid', NULL, NULL, 999999997);
