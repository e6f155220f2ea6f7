-- migration: expand
-- Reversals undo transactions of other types than card payments. `refunded_amount` is the amount
-- given back: by refunds for a card payment, and by reversals for any other type.
-- A partition that was attached has a constraint of its own besides the inherited one. The new
-- constraints allow everything that the old ones did, so no row needs to be read.
DO $$
DECLARE
    relation regclass;
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['transactions_type_check', 'transactions_status_check'] LOOP
        EXECUTE format('ALTER TABLE transactions DROP CONSTRAINT IF EXISTS %I', name);
        FOR relation IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'transactions'::regclass
        LOOP
            EXECUTE format('ALTER TABLE %s DROP CONSTRAINT IF EXISTS %I', relation, name);
        END LOOP;
    END LOOP;
END $$;
ALTER TABLE transactions
    ADD CONSTRAINT transactions_type_check CHECK (type IN (
        'transfer_p2p', 'transfer', 'agent_cashin', 'agent_cashout', 'agent_fund', 'agent_transfer',
        'commission_payout', 'pos_payment', 'online_payment', 'partner_fund', 'partner_deposit',
        'processor_transfer', 'refund', 'reversal')) NOT VALID,
    ADD CONSTRAINT transactions_status_check CHECK (status IN (
        'completed', 'failed', 'under_review', 'partially_refunded', 'refunded',
        'partially_reversed', 'reversed')) NOT VALID;

DROP TRIGGER transactions_keep_their_facts ON transactions;
CREATE TRIGGER transactions_keep_their_facts BEFORE UPDATE ON transactions
    FOR EACH ROW WHEN (
        (OLD.id, OLD.type, OLD.amount, OLD.fee_amount, OLD.currency, OLD.created_at)
            IS DISTINCT FROM
        (NEW.id, NEW.type, NEW.amount, NEW.fee_amount, NEW.currency, NEW.created_at)
        OR OLD.from_account IS DISTINCT FROM NEW.from_account
        OR OLD.to_account IS DISTINCT FROM NEW.to_account
        OR OLD.original_id IS DISTINCT FROM NEW.original_id
        OR OLD.usage_day IS DISTINCT FROM NEW.usage_day
        OR OLD.scope IS DISTINCT FROM NEW.scope
        OR OLD.request_id IS DISTINCT FROM NEW.request_id
        OR OLD.answer IS DISTINCT FROM NEW.answer
        OR OLD.status IN ('failed', 'refunded', 'reversed')
    ) EXECUTE FUNCTION refuse_change();

-- A reversal of a cash movement uses up the part that can still be matched, and gives back the
-- matches of an undone cash-in, as negative amounts.
ALTER TABLE cash_matches DROP CONSTRAINT cash_matches_amount_check;
ALTER TABLE cash_matches ADD CONSTRAINT cash_matches_amount_check CHECK (amount <> 0) NOT VALID;
