-- The books of a small installation: money that came in, was paid, given back, held and refused.
SELECT nextval('process_slots');
INSERT INTO installation VALUES ('currency', 'SLE');

INSERT INTO accounts (id, kind, owner_id, holder_name, public_name, currency, kyc_level, checked,
                      balance, held, overdraft, usage_day, day_used, month_used) VALUES
    (11, 'cash', NULL, 'Cash', 'Cash', 'SLE', NULL, false, 0, 0, 0, NULL, 0, 0),
    (12, 'fees', NULL, 'Fees', 'Fees', 'SLE', NULL, false, 0, 0, 0, NULL, 0, 0),
    (13, 'commission_expense', NULL, 'Commissions', 'Commissions', 'SLE', NULL, false, 0, 0, 0,
     NULL, 0, 0),
    (21, 'wallet', 201, 'Aminata Kamara', 'Aminata K.', 'SLE', 1, true, 75000, 40000, 0,
     '2026-03-02', 65000, 65000),
    (22, 'wallet', 202, 'Mohamed Sesay', 'Mohamed S.', 'SLE', 2, true, 47000, 0, 0, NULL, 0, 0),
    (23, 'float', 301, 'Marah Money Point', 'Marah Money Point', 'SLE', NULL, true, 470000, 0, 0,
     NULL, 0, 0),
    (24, 'commission', 301, 'Marah Money Point', 'Marah Money Point', 'SLE', NULL, true, 300, 0, 0,
     NULL, 0, 0),
    (25, 'settlement', 401, 'Fresh Market', 'Fresh Market', 'SLE', NULL, true, 14700, 0, 0,
     NULL, 0, 0),
    (26, 'clearing', 501, 'Remit', 'Remit', 'SLE', NULL, true, 993000, 0, 5000000, NULL, 0, 0);

INSERT INTO transactions (id, type, status, channel, amount, fee_amount, refunded_amount, currency,
                          from_account, to_account, held, card_serial, original_id, usage_day,
                          scope, request_id, fingerprint, answer, partner_id, partner_reference,
                          failure_code, context, created_at, completed_at)
SELECT id, type, status, channel, amount, fee, refunded, 'SLE', payer, payee, held, card, original,
       day::date, CASE WHEN name IS NOT NULL THEN 'key_1' END, name, decode(md5(name), 'hex'),
       convert_to(name, 'UTF8'), partner, reference, failure,
       CASE WHEN card IS NOT NULL THEN '{"memo": "as ever"}'::jsonb END,
       timestamptz '2026-03-02 10:00Z' + id * interval '1 second',
       CASE WHEN status NOT IN ('failed', 'under_review') THEN timestamptz '2026-03-02 12:00Z' END
FROM (VALUES
    (1001, 'transfer', 'completed', 'admin', 100000, 0, 0, 11, 21, 0, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL),
    (1002, 'agent_fund', 'completed', 'admin', 500000, 0, 0, 11, 23, 0, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL),
    (1003, 'transfer_p2p', 'completed', 'api', 10000, 0, 0, 21, 22, 0, NULL, NULL, '2026-03-02',
     'p2p-1', NULL, NULL, NULL),
    (1004, 'pos_payment', 'partially_refunded', 'pos', 20000, 300, 5000, 21, 25, 0, 'CARD-1', NULL,
     '2026-03-02', 'pos-1', NULL, NULL, NULL),
    (1005, 'refund', 'completed', 'pos', 5000, 0, 0, 25, 21, 0, NULL, 1004, NULL, 'refund-1', NULL,
     NULL, NULL),
    (1006, 'agent_cashin', 'completed', 'agent', 30000, 0, 0, 23, 22, 0, NULL, NULL, NULL,
     'cash-1', NULL, NULL, NULL),
    (1007, 'pos_payment', 'failed', 'pos', 9999999, 0, 0, 22, 25, 0, 'CARD-2', NULL, NULL, 'pos-2',
     NULL, NULL, 'INSUFFICIENT_FUNDS'),
    (1008, 'transfer_p2p', 'under_review', 'api', 40000, 0, 0, 21, 22, 40000, NULL, NULL,
     '2026-03-02', 'p2p-2', NULL, NULL, NULL),
    (1009, 'partner_fund', 'completed', 'admin', 1000000, 0, 0, 11, 26, 0, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL),
    (1010, 'partner_deposit', 'completed', 'partner', 7000, 0, 0, 26, 22, 0, NULL, NULL, NULL,
     NULL, 501, 'remit-1', NULL),
    (1011, 'pos_payment', 'failed', 'pos', 100, 0, 0, NULL, 25, 0, 'CARD-3', NULL, NULL, 'pos-3',
     NULL, NULL, 'CARD_NOT_ACTIVE')
) AS row (id, type, status, channel, amount, fee, refunded, payer, payee, held, card, original, day,
          name, partner, reference, failure);

INSERT INTO entries VALUES
    (1001, 0, 11, 21, 100000), (1002, 0, 11, 23, 500000), (1003, 0, 21, 22, 10000),
    (1004, 0, 21, 25, 20000), (1004, 1, 25, 12, 300), (1005, 0, 25, 21, 5000),
    (1006, 0, 23, 22, 30000), (1006, 1, 13, 24, 300), (1009, 0, 11, 26, 1000000),
    (1010, 0, 26, 22, 7000);

INSERT INTO account_rules VALUES
    (1, 500000000, 100000000, 200000000, 2000000000, 10000, '{phone}'),
    (2, 900000000, 500000000, 800000000, 9000000000, 20000, '{phone,id}');
INSERT INTO fee_rules VALUES ('pos_payment', NULL, 1500, 'receiver'),
                             ('transfer_p2p', 1000000, 0, 'sender'),
                             ('transfer_p2p', NULL, 500, 'sender');
UPDATE commission_rates SET rate = 1100 WHERE tier = 1;
