-- Compliance rules about payees and agents; rules can be created and deleted.
ALTER TABLE compliance_rules
    ADD subject text NOT NULL DEFAULT 'payer' CHECK (subject IN ('payer', 'payee', 'agent')),
    ADD CHECK (type <> 'PIN_FAILURES' OR subject = 'payer');

-- Alerts outlive a deleted rule and keep its identifier.
ALTER TABLE alerts DROP CONSTRAINT alerts_rule_id_fkey,
    ADD agent_id bigint REFERENCES agents (id),
    ADD CHECK (agent_id IS NULL OR subscriber_id IS NULL);
-- One open alert per rule and agent. Alerts about subscribers stay under alerts_open, which the ON
-- CONFLICT clause of the previous release needs too. An alert is subject to one of the two indexes.
CREATE UNIQUE INDEX alerts_open_of_agents ON alerts (rule_id, agent_id)
    WHERE agent_id IS NOT NULL AND status IN ('open', 'investigating') AND NOT review;

-- Existing installations get the new default rules; a new one gets all defaults at startup. The
-- identifiers are made as by tapgate.ids: milliseconds since 2025, slot, counter.
WITH installed AS (
    SELECT value AS currency,
           ((extract(epoch FROM now()) * 1000)::bigint - 1735689600000) << 22 AS first_id,
           CASE WHEN value = ANY ('{BIF,CLP,DJF,GNF,ISK,JPY,KMF,KRW,PYG,RWF,UGX,UYI,VND,VUV,XAF,XOF,XPF}')
                    THEN 1
                WHEN value = ANY ('{BHD,IQD,JOD,KWD,LYD,OMR,TND}') THEN 1000
                WHEN value = ANY ('{CLF,UYW}') THEN 10000
                ELSE 100 END AS unit
    FROM installation WHERE name = 'currency'
)
INSERT INTO compliance_rules (id, name, type, subject, transaction_types, threshold, window_seconds,
                              action, severity, status)
SELECT first_id + new.place, new.name, new.type, new.subject, new.transaction_types::text[],
       new.threshold * CASE new.type WHEN 'AMOUNT_THRESHOLD' THEN unit ELSE 1 END,
       new.window_seconds, 'alert', 'MEDIUM', new.status
FROM installed CROSS JOIN (VALUES
    (0, 'Large cash-in or top-up', 'AMOUNT_THRESHOLD', 'payee', '{agent_cashin,partner_fund}',
     200000, NULL::integer, 'active'),
    (1, 'Busy agent', 'TRANSACTION_COUNT', 'agent', '{agent_cashin,agent_cashout}',
     200, 86400, 'active'),
    (2, 'Wrong PINs', 'PIN_FAILURES', 'payer', '{transfer_p2p,transfer,pos_payment,online_payment}',
     5, 86400, 'inactive')
) AS new (place, name, type, subject, transaction_types, threshold, window_seconds, status)
WHERE EXISTS (SELECT FROM compliance_rules)
  AND (new.type <> 'PIN_FAILURES'
       OR NOT EXISTS (SELECT FROM compliance_rules WHERE type = 'PIN_FAILURES'));

-- Defaults are inserted once, so a rule that was deleted does not come back at the next start.
INSERT INTO installation (name, value)
SELECT 'default_rules', 'inserted' WHERE EXISTS (SELECT FROM compliance_rules);
