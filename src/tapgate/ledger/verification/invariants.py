"""Ledger invariants that `verify` checks, and the queries for rows that violate them.

The queries share no code with the modules that write the ledger. A query returns the prefix and the
number of an ID (both NULL if the row has no ID) and a description.

Range invariants, about transactions and entries, hold for every ID range and are checked range by
range. The parameters $1 and $2 are the first ID in the range and the first ID after it. State
invariants are about the current state. Their parameter $1 is the ID from which transactions were
not verified before, or 0 if everything is verified.
"""

from typing import Final

IN_TRANSIT: Final = "payouts in transit match requested and submitted payouts"
BOOK_TRANSFERS: Final = "transfers to other books match their transactions"
PAYOUTS: Final = "every payout matches its transaction"
BALANCES: Final = "every balance is the sum of its entries"
USAGE: Final = "daily and monthly usage matches the amounts sent"
CARD_SPENDING: Final = "daily spending of limited cards matches their payments"
TOTALS: Final = "overview totals match the transactions"

#: Checked for each ID range. A range includes the refunds and reversals of its transactions, and
#: its own refunds and reversals of earlier ones. A refund's ID can be lower than the payment's ID,
#: if a clock was set back or two nodes' clocks differ. OFFSET 0 fixes the plan: earlier
#: transactions are few and looked up by ID, whatever the statistics say.
RANGE_INVARIANTS: Final[dict[str, str]] = {
    "every entry refers to two existing accounts": """
        WITH used AS (
            SELECT debit_account AS id FROM entries
            WHERE transaction_id >= $1 AND transaction_id < $2
            UNION
            SELECT credit_account FROM entries WHERE transaction_id >= $1 AND transaction_id < $2
        ), missing AS MATERIALIZED (
            SELECT used.id FROM used
            LEFT JOIN LATERAL (SELECT id FROM accounts WHERE id = used.id OFFSET 0) AS found ON true
            WHERE found.id IS NULL)
        SELECT 'txn_', e.transaction_id, 'an account is missing' FROM entries e
        WHERE EXISTS (SELECT FROM missing) AND e.transaction_id >= $1 AND e.transaction_id < $2
          AND (e.debit_account IN (SELECT id FROM missing)
               OR e.credit_account IN (SELECT id FROM missing))""",
    "every entry belongs to a completed transaction": """
        SELECT 'txn_', e.transaction_id, coalesce('status ' || t.status, 'transaction is missing')
        FROM entries e
        LEFT JOIN transactions t ON t.id = e.transaction_id AND t.id >= $1 AND t.id < $2
        WHERE e.transaction_id >= $1 AND e.transaction_id < $2
          AND (t.id IS NULL OR t.status IN ('failed', 'under_review'))""",
    "transaction amounts and fees match their entries": """
        WITH moved AS (
            SELECT t.id, t.amount, t.fee_amount,
                   sum(e.amount) FILTER (WHERE e.debit_account = t.from_account
                                           AND e.credit_account = t.to_account) AS paid,
                   sum(e.amount) FILTER (WHERE e.credit_account <> t.to_account
                                           AND e.credit_account = ANY (ARRAY(
                       SELECT id FROM accounts WHERE owner_id IS NULL AND kind = 'fees'))) AS fee
            FROM transactions t LEFT JOIN entries e
              ON e.transaction_id = t.id AND e.transaction_id >= $1 AND e.transaction_id < $2
            WHERE t.id >= $1 AND t.id < $2
              AND t.status NOT IN ('failed', 'under_review')
            GROUP BY t.id)
        SELECT 'txn_', id, format('amount %s and fee %s, entries %s and %s', amount, fee_amount,
                                  coalesce(paid, 0), coalesce(fee, 0))
        FROM moved WHERE amount IS DISTINCT FROM paid OR fee_amount <> coalesce(fee, 0)""",
    "amounts given back match the refunds and reversals and never exceed the original": """
        WITH earlier AS MATERIALIZED (
            SELECT DISTINCT original_id AS id FROM transactions
            WHERE id >= $1 AND id < $2 AND original_id IS NOT NULL AND original_id < $1
        ), originals AS (
            SELECT id, type, amount, refunded_amount, status FROM transactions
            WHERE id >= $1 AND id < $2
            UNION ALL
            SELECT t.* FROM earlier CROSS JOIN LATERAL (
                SELECT id, type, amount, refunded_amount, status FROM transactions
                WHERE id = earlier.id OFFSET 0) AS t
        ), undone AS (
            SELECT original_id, type, sum(amount) AS amount FROM transactions
            WHERE type IN ('refund', 'reversal') AND status = 'completed'
              AND original_id IS NOT NULL AND original_id >= $1 AND original_id < $2
            GROUP BY original_id, type
            UNION ALL
            SELECT earlier.id, total.type, total.amount FROM earlier CROSS JOIN LATERAL (
                SELECT type, sum(amount) AS amount FROM transactions
                WHERE type IN ('refund', 'reversal') AND status = 'completed'
                  AND original_id = earlier.id GROUP BY type OFFSET 0) AS total)
        SELECT 'txn_', t.id, format('%s of %s given back, %s %s', t.refunded_amount, t.amount,
                                    coalesce(u.amount, 0), coalesce(u.type, 'nothing'))
        FROM originals t LEFT JOIN undone u ON u.original_id = t.id
        WHERE t.refunded_amount <> coalesce(u.amount, 0) OR t.refunded_amount > t.amount
           OR u.type <> CASE WHEN t.type IN ('pos_payment', 'online_payment') THEN 'refund'
                             ELSE 'reversal' END
           OR (t.status IN ('refunded', 'reversed')) <> (t.refunded_amount = t.amount)
           OR (t.status IN ('partially_refunded', 'partially_reversed'))
              <> (t.refunded_amount BETWEEN 1 AND t.amount - 1)
           OR t.status IN ('refunded', 'partially_refunded') AND u.type <> 'refund'
           OR t.status IN ('reversed', 'partially_reversed') AND u.type <> 'reversal'""",
    "reversals return fees and commissions in proportion": """
        WITH undone AS MATERIALIZED (
            SELECT DISTINCT original_id AS id FROM transactions
            WHERE id >= $1 AND id < $2 AND type = 'reversal' AND status = 'completed'
        ), platform AS (
            SELECT max(id) FILTER (WHERE kind = 'fees') AS fees,
                   max(id) FILTER (WHERE kind = 'commission_expense') AS commissions
            FROM accounts WHERE owner_id IS NULL
        ), moved AS (
            SELECT undone.id, original.amount, original.refunded_amount AS reversed,
                   coalesce(own.fee, 0) AS fee, coalesce(own.commission, 0) AS commission,
                   coalesce(back.fee, 0) AS fee_back,
                   coalesce(back.commission, 0) AS commission_back,
                   coalesce(back.recalled, 0) AS recalled
            FROM undone CROSS JOIN platform
            CROSS JOIN LATERAL (SELECT amount, refunded_amount FROM transactions
                                WHERE id = undone.id OFFSET 0) AS original
            CROSS JOIN LATERAL (
                SELECT sum(amount) FILTER (WHERE credit_account = platform.fees) AS fee,
                       sum(amount) FILTER (WHERE debit_account = platform.commissions) AS commission
                FROM entries WHERE transaction_id = undone.id OFFSET 0) AS own
            CROSS JOIN LATERAL (
                SELECT sum(e.amount) FILTER (WHERE e.debit_account = platform.fees) AS fee,
                       sum(e.amount) FILTER (WHERE e.credit_account = platform.commissions)
                           AS commission,
                       sum(e.amount) FILTER (
                           WHERE r.context ? 'recall_id' AND e.debit_account = r.from_account
                             AND e.credit_account = r.to_account) AS recalled
                FROM transactions r JOIN entries e ON e.transaction_id = r.id
                WHERE r.original_id = undone.id AND r.type = 'reversal' AND r.status = 'completed'
                OFFSET 0) AS back)
        SELECT 'txn_', id, format('fee %s of %s and commission %s of %s back, %s of %s reversed',
                                  fee_back, fee, commission_back, commission, reversed, amount)
        FROM moved
        WHERE fee_back <> div(fee * reversed, amount) - div(fee * recalled, amount)
           OR commission_back <> div(commission * reversed, amount)""",
}

#: The entry sums before $1 are passed as $2 and $3, except for transactions that were ever
#: under review: their entries are written when they are released. For limits, $2 is the first day,
#: and for the overview totals the first bucket. For transfers to other books, $1 is the archive's
#: end, because their rows are kept when their transactions are archived.
STATE_INVARIANTS: Final[dict[str, str]] = {
    BALANCES: """
        WITH reviewed AS (
            SELECT id FROM transactions WHERE held > 0 AND id < $1
        ), sides AS (
            SELECT debit_account AS account_id, -amount AS amount FROM entries
            WHERE transaction_id >= $1
            UNION ALL
            SELECT credit_account, amount FROM entries WHERE transaction_id >= $1
            UNION ALL
            SELECT unnest(ARRAY[debit_account, credit_account]), unnest(ARRAY[-amount, amount])
            FROM entries WHERE transaction_id IN (SELECT id FROM reviewed)
            UNION ALL
            SELECT account_id, amount::numeric FROM unnest($2::bigint[], $3::text[])
                AS earlier (account_id, amount)
        ), sums AS (SELECT account_id, sum(amount) AS total FROM sides GROUP BY account_id)
        SELECT 'acc_', a.id, format('balance %s, entries %s', a.balance, coalesce(s.total, 0))
        FROM accounts a LEFT JOIN sums s ON s.account_id = a.id
        WHERE a.checked AND a.balance <> coalesce(s.total, 0)""",
    IN_TRANSIT: """
        WITH transit AS (
            SELECT id FROM accounts WHERE owner_id IS NULL AND kind = 'payouts_in_transit'
        ), sides AS (
            SELECT CASE WHEN credit_account = transit.id THEN amount ELSE -amount END AS amount
            FROM entries, transit
            WHERE transaction_id >= $1 AND transit.id IN (debit_account, credit_account)
            UNION ALL
            SELECT amount::numeric FROM unnest($2::bigint[], $3::text[])
                AS earlier (account_id, amount) JOIN transit ON transit.id = account_id
        ), balance AS (
            SELECT coalesce(sum(amount), 0) AS amount FROM sides
        ), open AS (
            SELECT coalesce(sum(amount), 0) AS amount FROM payouts
            WHERE status IN ('requested', 'submitted'))
        SELECT NULL, NULL, format('balance %s, payouts %s', balance.amount, open.amount)
        FROM balance, open WHERE balance.amount <> open.amount""",
    PAYOUTS: """
        SELECT 'po_', p.id, format('amount %s and fee %s, transaction %s and %s', p.amount,
                                   p.fee_amount, t.amount, t.fee_amount)
        FROM payouts p JOIN transactions t ON t.id = p.transaction_id AND t.id >= $1
        WHERE (t.type, t.status, t.amount, t.fee_amount, t.from_account)
           <> ('payout', 'completed', p.amount, p.fee_amount, p.account_id)""",
    "no account is below its minimum balance": """
        SELECT 'acc_', id, format('balance %s, held %s, overdraft %s', balance, held, overdraft)
        FROM accounts WHERE checked AND balance - held + overdraft < 0""",
    "held funds match payments under review and open recalls": """
        WITH reasons AS (
            SELECT from_account AS account_id, t.held
            FROM transactions t JOIN accounts a ON a.id = from_account
            WHERE t.status = 'under_review' AND a.checked
            UNION ALL
            SELECT receiver_account, held_amount FROM recalls WHERE status = 'open'
        ), expected AS (SELECT account_id, sum(held) AS held FROM reasons GROUP BY account_id)
        SELECT 'acc_', a.id, format('held %s, expected %s', a.held, coalesce(e.held, 0))
        FROM accounts a LEFT JOIN expected e ON e.account_id = a.id
        WHERE a.held <> coalesce(e.held, 0)""",
    "recalls match their transfers and reversals": """
        SELECT 'txn_', r.transaction_id, format('recall %s, held %s, reversal %s', r.status,
                                                r.held_amount, coalesce(back.amount, 0))
        FROM recalls r
        LEFT JOIN transactions t ON t.id = r.transaction_id
        LEFT JOIN transactions back ON back.id = r.reversal_id
        WHERE t.id IS NOT NULL AND (
              t.type <> 'transfer_p2p'
           OR (t.from_account, t.to_account, t.amount)
              <> (r.sender_account, r.receiver_account, r.amount)
           OR (r.status = 'returned' OR r.status = 'decided' AND r.decision = 'return')
              <> (r.reversal_id IS NOT NULL)
           OR r.reversal_id IS NOT NULL
              AND ((back.original_id, back.amount, back.status)
                   = (r.transaction_id, r.held_amount, 'completed')) IS NOT TRUE)""",
    BOOK_TRANSFERS: """
        SELECT 'txn_', b.id, format('transfer %s, transaction %s of type %s', b.status,
                                    coalesce(t.status, 'is missing'), t.type)
        FROM book_transfers b
        LEFT JOIN (transactions t
                   JOIN accounts a ON a.id = t.to_account AND a.kind = 'clearing') ON t.id = b.id
        WHERE b.id >= $1
          AND (t.type = 'transfer_p2p' AND CASE b.status
                  WHEN 'delivered' THEN t.status = 'completed'
                  WHEN 'returned' THEN t.status = 'reversed'
                  WHEN 'canceled' THEN t.status = 'failed'
                  ELSE true END) IS NOT TRUE
        UNION ALL
        SELECT 'txn_', t.id, format('transaction %s without a transfer to another book', t.status)
        FROM accounts a
        JOIN transactions t ON t.to_account = a.id AND t.type = 'transfer_p2p' AND t.id >= $2
        WHERE a.kind = 'clearing' AND t.status <> 'failed'
          AND NOT EXISTS (SELECT FROM book_transfers b WHERE b.id = t.id)""",
    "batches match their lines and transactions": """
        WITH counted AS (
            SELECT batch_id, count(*) FILTER (WHERE line.status = 'paid') AS paid,
                   count(*) FILTER (WHERE line.status = 'failed') AS failed,
                   coalesce(sum(line.amount) FILTER (WHERE line.status = 'paid'), 0) AS paid_amount
            FROM batch_lines line GROUP BY 1)
        SELECT NULL, NULL, format('batch %s: paid %s (%s), failed %s; lines: %s (%s), %s', b.id,
                                  b.paid, b.paid_amount, b.failed, coalesce(c.paid, 0),
                                  coalesce(c.paid_amount, 0), coalesce(c.failed, 0))
        FROM batches b LEFT JOIN counted c ON c.batch_id = b.id
        WHERE (b.paid, b.failed, b.paid_amount)
           <> (coalesce(c.paid, 0), coalesce(c.failed, 0), coalesce(c.paid_amount, 0))
        UNION ALL
        SELECT 'txn_', t.id, format('%s of %s, line %s of %s', t.status, t.amount, line.status,
                                    line.amount)
        FROM transactions t LEFT JOIN batch_lines line ON line.transaction_id = t.id
        WHERE t.type = 'batch_credit' AND (
              line.amount = t.amount AND line.status = CASE t.status
                  WHEN 'failed' THEN 'failed' WHEN 'under_review' THEN 'pending' ELSE 'paid' END
              ) IS NOT TRUE""",
    USAGE: """
        WITH sent AS (
            SELECT a.id,
                   coalesce(sum(t.amount - t.refunded_amount)
                       FILTER (WHERE t.usage_day = a.usage_day), 0) AS day_used,
                   coalesce(sum(t.amount - t.refunded_amount), 0) AS month_used
            FROM (
                SELECT id, usage_day, month::date AS month_start,
                       (month + interval '1 month')::date AS month_end
                FROM accounts
                CROSS JOIN LATERAL date_trunc('month', usage_day::timestamp) AS month
                WHERE usage_day >= $2 OFFSET 0
            ) AS a
            LEFT JOIN transactions t ON t.from_account = a.id AND t.status <> 'failed'
                  AND t.usage_day >= a.month_start AND t.usage_day < a.month_end
                  AND t.id >= $1
            GROUP BY a.id)
        SELECT 'acc_', a.id, format('used %s (day) and %s (month), sent %s and %s',
                                    a.day_used, a.month_used, s.day_used, s.month_used)
        FROM accounts a JOIN sent s USING (id)
        WHERE (a.day_used, a.month_used) <> (s.day_used, s.month_used)""",
    CARD_SPENDING: """
        WITH spent AS (
            SELECT c.id, c.account_id, c.day_spent,
                   coalesce(sum(t.amount - t.refunded_amount), 0) AS paid
            FROM cards c
            LEFT JOIN transactions t ON t.from_account = c.account_id
                  AND t.card_serial = c.serial AND t.usage_day = c.usage_day
                  AND t.status <> 'failed' AND t.id >= $1
            WHERE c.daily_limit IS NOT NULL AND c.usage_day >= $2
            GROUP BY c.id)
        SELECT 'acc_', account_id, format('card spending %s, payments %s', day_spent, paid)
        FROM spent WHERE day_spent <> paid""",
    "commission is paid once on cash that is deposited and withdrawn": """
        WITH recent AS (
            SELECT * FROM cash_matches
            WHERE matched_at >= (SELECT max(matched_at) FROM cash_matches) - interval '7 days'
        ), own AS (
            SELECT transaction_id AS id, sum(amount) AS amount FROM cash_matches GROUP BY 1
        ), used AS (
            SELECT matched_id AS id, sum(amount) AS amount FROM cash_matches
            WHERE matched_id IN (SELECT matched_id FROM recent) GROUP BY 1
        ), paid AS (
            SELECT e.transaction_id AS id, sum(e.amount) AS amount
            FROM entries e JOIN accounts a ON a.id = e.debit_account
            WHERE a.kind = 'commission_expense'
              AND e.transaction_id IN (SELECT transaction_id FROM recent)
            GROUP BY 1
        ), families AS (
            SELECT account_id, coalesce(parent_agent_id, id) AS id FROM agents)
        SELECT 'txn_', m.transaction_id, 'matched with a transaction that it does not reverse'
        FROM recent m
        LEFT JOIN transactions later ON later.id = m.transaction_id
        LEFT JOIN transactions earlier ON earlier.id = m.matched_id
        LEFT JOIN families ON families.account_id
             = CASE later.type WHEN 'agent_cashin' THEN later.from_account ELSE later.to_account END
        LEFT JOIN families same ON same.id = families.id AND same.account_id
             = CASE later.type WHEN 'agent_cashin' THEN earlier.to_account
                               ELSE earlier.from_account END
        WHERE ((later.type, earlier.type) IN (('agent_cashin', 'agent_cashout'),
                                              ('agent_cashout', 'agent_cashin'))
               AND CASE later.type WHEN 'agent_cashin' THEN later.to_account = earlier.from_account
                                   ELSE later.from_account = earlier.to_account END
               AND same.id IS NOT NULL AND m.amount > 0
               AND later.completed_at IS NOT NULL AND earlier.completed_at IS NOT NULL)
              IS NOT TRUE
          AND (later.type = 'reversal' AND later.completed_at IS NOT NULL
               AND (later.original_id = m.matched_id AND m.amount > 0
                    OR m.amount < 0 AND EXISTS (
                       SELECT FROM cash_matches given
                       WHERE given.transaction_id = later.original_id
                         AND given.matched_id = m.matched_id AND given.amount >= -m.amount)))
              IS NOT TRUE
        UNION ALL
        SELECT 'txn_', t.id, format('%s of %s matched with later transactions', used.amount,
                                    CASE t.type WHEN 'agent_cashin' THEN coalesce(own.amount, 0)
                                                ELSE t.amount END)
        FROM used JOIN transactions t USING (id) LEFT JOIN own USING (id)
        WHERE used.amount > CASE t.type WHEN 'agent_cashin' THEN coalesce(own.amount, 0)
                                        ELSE t.amount END
        UNION ALL
        SELECT 'txn_', t.id, format('amount %s, matched %s, commission %s', t.amount, own.amount,
                                    coalesce(paid.amount, 0))
        FROM own JOIN transactions t USING (id) LEFT JOIN paid USING (id)
        WHERE t.id IN (SELECT transaction_id FROM recent)
          AND own.amount + coalesce(paid.amount, 0) > t.amount""",
    "every wallet, float, settlement and clearing account has a holder": """
        SELECT 'acc_', a.id, 'no holder' FROM accounts a
        WHERE a.owner_id IS NOT NULL
          AND NOT EXISTS (SELECT FROM subscribers WHERE account_id = a.id)
          AND NOT EXISTS (SELECT FROM agents
                          WHERE account_id = a.id OR commission_account_id = a.id)
          AND NOT EXISTS (SELECT FROM processors WHERE account_id = a.id)
          AND NOT EXISTS (SELECT FROM partners WHERE account_id = a.id)""",
    TOTALS: """
        WITH actual AS (
            SELECT date_bin('15 minutes', created_at, '2000-01-01Z') AS quarter, type,
                   CASE WHEN status IN ('failed', 'under_review') THEN status
                        ELSE 'completed' END AS outcome,
                   coalesce(failure_code, '') AS code,
                   count(*) AS count, sum(amount) AS amount, sum(fee_amount) AS fees
            FROM transactions WHERE id >= $1 AND created_at >= $2 GROUP BY 1, 2, 3, 4
        ), counted AS (
            SELECT quarter, type, outcome, coalesce(failure_code, '') AS code,
                   sum(count) AS count, sum(amount) AS amount, sum(fees) AS fees
            FROM figures WHERE quarter >= $2 GROUP BY 1, 2, 3, 4)
        SELECT NULL, NULL,
               format('%s UTC, %s %s %s: count %s, amount %s, fees %s; actual %s, %s and %s',
                      to_char(quarter AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'), type, outcome,
                      code, coalesce(c.count, 0), coalesce(c.amount, 0), coalesce(c.fees, 0),
                      coalesce(s.count, 0), coalesce(s.amount, 0), coalesce(s.fees, 0))
        FROM actual s FULL JOIN counted c USING (quarter, type, outcome, code)
        WHERE (coalesce(c.count, 0), coalesce(c.amount, 0), coalesce(c.fees, 0))
           <> (coalesce(s.count, 0), coalesce(s.amount, 0), coalesce(s.fees, 0))""",
}

INVARIANTS: Final = (*RANGE_INVARIANTS, *STATE_INVARIANTS)
