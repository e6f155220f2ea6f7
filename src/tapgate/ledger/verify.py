"""Verification that balances, transactions, entries and rollups agree with each other.

Each claim is checked by a query that returns the rows that contradict the claim. The queries share
no code with the modules that write the ledger.

A query reads one database snapshot, and each claim has its own. A snapshot of all claims would be
held for many minutes, in which PostgreSQL could not remove old versions of rows. Every payment to a
busy merchant adds a version of its account, and later payments would read them all.
"""

from typing import Any, Final

import asyncpg
import msgspec

from tapgate import ids

_MAX_EXAMPLES: Final = 5
_QUERY_TIMEOUT_SECONDS: Final = 3600
#: The queries aggregate over entire tables and would spill to disk with PostgreSQL's default.
_WORK_MEM: Final = "128MB"

#: claim -> query for the rows that contradict it. The columns are ID prefix, internal ID (both NULL
#: if the row has no ID) and description.
CLAIMS: Final[dict[str, str]] = {
    "every balance is the sum of its entries": """
        WITH sums AS (
            SELECT account_id, sum(amount) AS total FROM (
                SELECT debit_account AS account_id, -amount AS amount FROM entries
                UNION ALL SELECT credit_account, amount FROM entries) AS sides
            GROUP BY account_id)
        SELECT 'acc_', a.id, format('balance %s, entries %s', a.balance, coalesce(s.total, 0))
        FROM accounts a LEFT JOIN sums s ON s.account_id = a.id
        WHERE a.checked AND a.balance <> coalesce(s.total, 0)""",
    "every entry refers to two existing accounts": """
        SELECT 'txn_', e.transaction_id, 'an account is missing' FROM entries e
        WHERE NOT EXISTS (SELECT FROM accounts WHERE id = e.debit_account)
           OR NOT EXISTS (SELECT FROM accounts WHERE id = e.credit_account)""",
    "every entry belongs to a completed transaction": """
        SELECT 'txn_', e.transaction_id, coalesce('status ' || t.status, 'transaction is missing')
        FROM entries e LEFT JOIN transactions t ON t.id = e.transaction_id
        WHERE t.id IS NULL OR t.status IN ('failed', 'under_review')""",
    "transaction amounts and fees match their entries": """
        WITH moved AS (
            SELECT t.id, t.amount, t.fee_amount,
                   sum(e.amount) FILTER (WHERE e.debit_account = t.from_account
                                           AND e.credit_account = t.to_account) AS paid,
                   sum(e.amount) FILTER (WHERE e.credit_account <> t.to_account
                                           AND e.credit_account = ANY (ARRAY(
                       SELECT id FROM accounts WHERE kind = 'fees'))) AS fee
            FROM transactions t LEFT JOIN entries e ON e.transaction_id = t.id
            WHERE t.status IN ('completed', 'partially_refunded', 'refunded')
            GROUP BY t.id)
        SELECT 'txn_', id, format('amount %s and fee %s, entries %s and %s', amount, fee_amount,
                                  coalesce(paid, 0), coalesce(fee, 0))
        FROM moved WHERE amount IS DISTINCT FROM paid OR fee_amount <> coalesce(fee, 0)""",
    "no account is below its minimum balance": """
        SELECT 'acc_', id, format('balance %s, held %s, overdraft %s', balance, held, overdraft)
        FROM accounts WHERE checked AND balance - held + overdraft < 0""",
    "held funds match payments under review": """
        WITH reviews AS (
            SELECT from_account, sum(t.held) AS held
            FROM transactions t JOIN accounts a ON a.id = from_account
            WHERE t.status = 'under_review' AND a.checked GROUP BY from_account)
        SELECT 'acc_', a.id, format('held %s, under review %s', a.held, coalesce(r.held, 0))
        FROM accounts a LEFT JOIN reviews r ON r.from_account = a.id
        WHERE a.held <> coalesce(r.held, 0)""",
    "refunded amounts match the refunds and never exceed the payment": """
        WITH refunds AS (
            SELECT original_id, sum(amount) AS amount FROM transactions
            WHERE type = 'refund' AND status = 'completed' GROUP BY original_id)
        SELECT 'txn_', t.id, format('%s of %s refunded, refunds %s', t.refunded_amount, t.amount,
                                    coalesce(r.amount, 0))
        FROM transactions t LEFT JOIN refunds r ON r.original_id = t.id
        WHERE t.refunded_amount <> coalesce(r.amount, 0) OR t.refunded_amount > t.amount
           OR (t.status = 'refunded') <> (t.refunded_amount = t.amount)
           OR (t.status = 'partially_refunded')
              <> (t.refunded_amount BETWEEN 1 AND t.amount - 1)""",
    "daily and monthly usage matches the amounts sent": """
        WITH sent AS (
            SELECT a.id,
                   coalesce(sum(t.amount - t.refunded_amount)
                       FILTER (WHERE t.usage_day = a.usage_day), 0) AS day_used,
                   coalesce(sum(t.amount - t.refunded_amount), 0) AS month_used
            FROM accounts a
            LEFT JOIN transactions t ON t.from_account = a.id AND t.status <> 'failed'
                  AND date_trunc('month', t.usage_day) = date_trunc('month', a.usage_day)
            WHERE a.usage_day IS NOT NULL
            GROUP BY a.id)
        SELECT 'acc_', a.id, format('used %s (day) and %s (month), sent %s and %s',
                                    a.day_used, a.month_used, s.day_used, s.month_used)
        FROM accounts a JOIN sent s USING (id)
        WHERE (a.day_used, a.month_used) <> (s.day_used, s.month_used)""",
    "daily spending of limited cards matches their payments": """
        WITH spent AS (
            SELECT c.id, c.account_id, c.day_spent,
                   coalesce(sum(t.amount - t.refunded_amount), 0) AS paid
            FROM cards c
            LEFT JOIN transactions t ON t.from_account = c.account_id
                  AND t.card_serial = c.serial AND t.usage_day = c.usage_day
                  AND t.status <> 'failed'
            WHERE c.daily_limit IS NOT NULL AND c.usage_day IS NOT NULL
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
            GROUP BY 1)
        SELECT 'txn_', m.transaction_id, 'matched with a transaction that it does not reverse'
        FROM recent m
        LEFT JOIN transactions later ON later.id = m.transaction_id
        LEFT JOIN transactions earlier ON earlier.id = m.matched_id
        WHERE ((later.type, earlier.type) IN (('agent_cashin', 'agent_cashout'),
                                              ('agent_cashout', 'agent_cashin'))
               AND later.from_account = earlier.to_account
               AND later.to_account = earlier.from_account
               AND later.completed_at IS NOT NULL AND earlier.completed_at IS NOT NULL)
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
    "overview totals match the transactions": """
        WITH actual AS (
            SELECT date_bin('15 minutes', created_at, '2000-01-01Z') AS quarter, type,
                   CASE WHEN status IN ('failed', 'under_review') THEN status
                        ELSE 'completed' END AS outcome,
                   coalesce(failure_code, '') AS code,
                   count(*) AS count, sum(amount) AS amount, sum(fee_amount) AS fees
            FROM transactions GROUP BY 1, 2, 3, 4
        ), counted AS (
            SELECT quarter, type, outcome, coalesce(failure_code, '') AS code,
                   sum(count) AS count, sum(amount) AS amount, sum(fees) AS fees
            FROM figures GROUP BY 1, 2, 3, 4)
        SELECT NULL, NULL,
               format('%s UTC, %s %s %s: count %s, amount %s, fees %s; actual %s, %s and %s',
                      to_char(quarter AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'), type, outcome,
                      code, coalesce(c.count, 0), coalesce(c.amount, 0), coalesce(c.fees, 0),
                      coalesce(s.count, 0), coalesce(s.amount, 0), coalesce(s.fees, 0))
        FROM actual s FULL JOIN counted c USING (quarter, type, outcome, code)
        WHERE (coalesce(c.count, 0), coalesce(c.amount, 0), coalesce(c.fees, 0))
           <> (coalesce(s.count, 0), coalesce(s.amount, 0), coalesce(s.fees, 0))""",
}


class Finding(msgspec.Struct, frozen=True):
    claim: str
    broken: int
    examples: list[str]


class Proof(msgspec.Struct, frozen=True):
    transactions: int
    entries: int
    accounts: int
    findings: list[Finding]

    @property
    def is_valid(self) -> bool:
        return all(finding.broken == 0 for finding in self.findings)


async def verify(connection: Any) -> Proof:
    (counts,) = await _fetch(
        connection,
        """SELECT (SELECT count(*) FROM transactions), (SELECT count(*) FROM entries),
                  (SELECT count(*) FROM accounts)""",
    )
    findings = [await _check_claim(connection, claim, sql) for claim, sql in CLAIMS.items()]
    return Proof(counts[0], counts[1], counts[2], findings)


async def _fetch(connection: asyncpg.Connection, sql: str) -> list[asyncpg.Record]:
    """Run a query in a database transaction, and therefore a snapshot, of its own."""
    async with connection.transaction(readonly=True):
        await connection.execute(f"SET LOCAL work_mem = '{_WORK_MEM}'")
        rows: list[asyncpg.Record] = await connection.fetch(sql, timeout=_QUERY_TIMEOUT_SECONDS)
        return rows


async def _check_claim(connection: asyncpg.Connection, claim: str, sql: str) -> Finding:
    rows = await _fetch(
        connection,
        f"""SELECT *, count(*) OVER () FROM ({sql}) AS contradictions (prefix, number, description)
            LIMIT {_MAX_EXAMPLES}""",
    )
    return Finding(
        claim,
        broken=rows[0][3] if rows else 0,
        examples=[
            description if number is None else f"{ids.encode(prefix, number)}: {description}"
            for prefix, number, description, _ in rows
        ],
    )
