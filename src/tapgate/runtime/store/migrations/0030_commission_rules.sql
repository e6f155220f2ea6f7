-- Commission by type and tier, and which cash-ins and cash-outs cancel each other out.
CREATE TABLE commission_rules (
    type text NOT NULL CHECK (type IN ('agent_cashin', 'agent_cashout')),
    tier smallint NOT NULL CHECK (tier BETWEEN 1 AND 3),
    rate integer NOT NULL CHECK (rate BETWEEN 0 AND 100000),  -- thousandths of a percent
    minimum_amount bigint NOT NULL CHECK (minimum_amount >= 0),
    PRIMARY KEY (type, tier)
);

-- An existing installation keeps its rates. During a rolling upgrade, processes of the previous
-- release still read commission_rates; a later release removes the table. The minimum is 10.00 in the installation's currency;
-- before the first start there is no currency yet, and the defaults are inserted at startup.
INSERT INTO commission_rules (type, tier, rate, minimum_amount)
SELECT kind.type, tier, CASE kind.type WHEN 'agent_cashin' THEN rate ELSE 0 END,
       CASE WHEN value = ANY ('{BIF,CLP,DJF,GNF,ISK,JPY,KMF,KRW,PYG,RWF,UGX,UYI,VND,VUV,XAF,XOF,XPF}')
                THEN 10
            WHEN value = ANY ('{BHD,IQD,JOD,KWD,LYD,OMR,TND}') THEN 10000
            WHEN value = ANY ('{CLF,UYW}') THEN 100000
            ELSE 1000 END
FROM commission_rates
CROSS JOIN (VALUES ('agent_cashin'), ('agent_cashout')) AS kind (type)
JOIN installation ON installation.name = 'currency';

-- What rounding left over of an agent's commission, in thousandths of a percent of a minor unit. It
-- is carried over to the next one, so an amount earns the same however it is split.
ALTER TABLE agents ADD commission_remainder integer NOT NULL DEFAULT 0
        CHECK (commission_remainder BETWEEN -50000 AND 49999),
    DROP CONSTRAINT agents_commission_tier_fkey,
    ADD CONSTRAINT agents_commission_tier_check CHECK (commission_tier BETWEEN 1 AND 3);

-- The part of a cash-in or cash-out that earns no commission, and the earlier transaction in the
-- opposite direction that it is matched with. Every amount is matched once. Old rows are pruned.
CREATE TABLE cash_matches (
    transaction_id bigint NOT NULL,
    matched_id bigint NOT NULL,
    amount bigint NOT NULL CHECK (amount > 0),
    matched_at timestamptz NOT NULL,
    PRIMARY KEY (transaction_id, matched_id)
);
CREATE INDEX cash_matches_matched ON cash_matches (matched_id);
CREATE INDEX cash_matches_oldest ON cash_matches (matched_at);

-- Finds the recent cash movements between one customer and one agent, in both directions. The ledger
-- keeps the plans of its statements, so conditions are written in a way that only this index can
-- serve: a plan made while there are few cash movements must not read all of them later.
CREATE INDEX transactions_cash ON transactions
    (least(from_account, to_account), greatest(from_account, to_account), completed_at)
    WHERE left(type, 10) = 'agent_cash';
