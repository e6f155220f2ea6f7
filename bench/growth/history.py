"""Synthetic payment history for the grown installation.

Every payer is funded once and pays the dataset's merchants, over 12 months that end two days ago.
The default compliance rules do not count payments that old.

Payers take turns in a pseudorandom order that is the same in every round, and have one or more
turns per round. Every intermediate balance can therefore be computed from the payment's number. At
the end, each merchant's revenue is paid out, so that the dataset's current balances result only
from business.payments.transactions dated after this history.
"""

from datetime import datetime, timedelta
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

import asyncpg

from bench.growth import stored_responses
from tapgate.core.id_generator import first_id_at
from tapgate.ledger import chart
from tapgate.ledger.commands import TransactionResult, decode_result, encode_result

_MILLISECOND: Final = timedelta(milliseconds=1)


class Span(NamedTuple):
    """Time span, and the identifier range generated within it."""

    begin: datetime  # a whole millisecond
    length: timedelta

    @property
    def milliseconds(self) -> int:
        return self.length // _MILLISECOND

    @property
    def first_id(self) -> int:
        return first_id_at(self.begin)

    @property
    def ids_per_millisecond(self) -> int:
        return first_id_at(self.begin + _MILLISECOND) - self.first_id


def compute_spans(now: datetime) -> tuple[Span, Span]:
    """Return the time spans for fundings and payments."""
    today = now.replace(microsecond=0)
    begin, day = today - timedelta(days=366), timedelta(days=1)
    return Span(begin, day), Span(begin + day, timedelta(days=363))


class PaymentHistory:
    def __init__(
        self, connection: asyncpg.Connection, *, now: datetime, zone: ZoneInfo, payments: int
    ) -> None:
        self._connection = connection
        self._funding_span, self._payment_span = compute_spans(now)
        self._zone = zone
        self.payments = payments
        self._turn_count = self._merchant_count = self._funding_id = 0
        self._fund_sql = self._pay_sql = ""

    @property
    def begin(self) -> datetime:
        return self._funding_span.begin

    async def plan(self, *, frequent_payer: int, frequent_payments: int) -> None:
        """Plan the order of payments. `frequent_payer` makes about `frequent_payments` of them."""
        await self._connection.execute(_CREATE_TABLES)
        await self._connection.execute(
            _UPDATE_FREQUENT_PAYER_SLOTS, frequent_payer, frequent_payments, self.payments
        )
        await self._connection.execute(_INSERT_TURNS, self.payments)
        self._turn_count = await self._connection.fetchval("SELECT count(*) FROM turns")
        await self._load_funding_templates()
        await self._load_payment_templates()
        await self._connection.execute("ANALYZE turns")

    async def _load_funding_templates(self) -> None:
        """Derive the templates from a funding that the ledger wrote, so that rows look the same."""
        row = await self._connection.fetchrow(_SELECT_FUNDING)
        self._funding_id, result = row["id"], decode_result(row["answer"])
        names = await self._connection.fetch("SELECT number, masked FROM names")
        values = {"transaction_id": "new.id", "amount": "funding", "payee_available": "funding"}
        templates = [
            stored_responses.encode_template(result, *values, payee_name=name["masked"])
            for name in names
        ]
        await self._connection.execute(
            "INSERT INTO fundings SELECT * FROM unnest($1::bigint[], $2::bytea[])",
            [name["number"] for name in names],
            templates,
        )
        self._fund_sql = _INSERT_FUNDINGS.format(
            answer=stored_responses.render_overlay_sql("form.answer", templates[0], values)
        )

    async def _load_payment_templates(self) -> None:
        rows = await self._connection.fetch(_SELECT_PAYMENTS)
        values = {
            "transaction_id": "id",
            "amount": "price",
            "fee": "fee",
            "payer_available": "from_balance",
        }
        templates = [
            stored_responses.encode_template(decode_result(row["answer"]), *values) for row in rows
        ]
        await self._connection.execute(_INSERT_MERCHANTS, [row["id"] for row in rows], templates)
        self._merchant_count = len(rows)
        self._pay_sql = _INSERT_PAYMENTS.format(
            answer=stored_responses.render_overlay_sql("answer", templates[0], values)
        )

    async def fund(self, first: int, last: int) -> None:
        """Fund the payers numbered `first` to `last` for their payments and final balances."""
        span = self._funding_span
        await self._connection.execute(
            self._fund_sql,
            *(first, last, self._funding_id),
            *(span.first_id, span.ids_per_millisecond, span.begin),
        )

    async def pay(self, first: int, last: int) -> None:
        span = self._payment_span
        await self._connection.execute(
            self._pay_sql,
            *(first, last, self._turn_count, self._merchant_count, self.payments),
            *(span.first_id, span.ids_per_millisecond, span.begin, span.milliseconds),
            str(self._zone),
        )

    async def pay_out(self) -> None:
        """Pay out each merchant's revenue. Merchants are few, so this is not batched."""
        end = self._payment_span.begin + self._payment_span.length
        platform = await self._connection.fetchrow(_SELECT_PLATFORM_ACCOUNT, self._funding_id)
        for merchant in await self._connection.fetch("SELECT * FROM merchants WHERE revenue > 0"):
            moment = end + merchant["merchant"] * _MILLISECOND
            result = TransactionResult(
                transaction_id=first_id_at(moment),
                status="completed",
                amount=merchant["revenue"],
                fee=0,
                payer_available=0,
                payee_name=platform["name"],
            )
            await self._connection.execute(
                _INSERT_PAYOUT,
                *(
                    result.transaction_id,
                    self._funding_id,
                    merchant["revenue"],
                    merchant["to_account"],
                ),
                *(platform["id"], encode_result(result), moment),
            )

    async def write_usage(self) -> None:
        """Compute each payer's limit usage on its last payment day and in the month of that day.

        The usage is added to the dataset's accounts, and used later for new accounts.
        """
        await self._connection.execute(_INSERT_USAGE, self._payment_span.first_id, self._funding_id)
        await self._connection.execute("ANALYZE used")
        await self._connection.execute(_UPDATE_DATASET_USAGE)

    async def write_rollups(self) -> None:
        """Replace all rollups with those that the ledger would have produced."""
        async with self._connection.transaction():
            await self._connection.execute("DELETE FROM figures")
            await self._connection.execute(_INSERT_ROLLUPS)


_CREATE_TABLES: Final = """
    CREATE TEMP TABLE turns (position bigint PRIMARY KEY, payer bigint, nth bigint, paid bigint);
    CREATE TEMP TABLE fundings (name_number bigint PRIMARY KEY, answer bytea);
    CREATE TEMP TABLE merchants (
        merchant bigint PRIMARY KEY, to_account bigint, channel text, currency text, scope text,
        context jsonb, answer bytea, revenue bigint);
    CREATE TEMP TABLE used (account_id bigint PRIMARY KEY, day date, day_used bigint,
                            month_used bigint)"""

#: Gives the frequent payer as many turns per round as the planned number of payments requires.
_UPDATE_FREQUENT_PAYER_SLOTS: Final = """
    UPDATE payers SET slots = greatest(1, $2 * others.slots / ($3 - $2))
    FROM (SELECT sum(slots)::bigint AS slots FROM payers WHERE owner_id <> $1) AS others
    WHERE owner_id = $1"""

_INSERT_TURNS: Final = """
    INSERT INTO turns
    WITH turns AS (
        SELECT row_number() OVER (ORDER BY hashint8extended(number, slot), number) - 1 AS position,
               count(*) OVER () AS size, number, slots
        FROM payers CROSS JOIN LATERAL generate_series(1, slots) AS slot)
    SELECT position, number, row_number() OVER (PARTITION BY number ORDER BY position) - 1,
           $1 / size * slots
               + count(*) FILTER (WHERE position < $1 % size) OVER (PARTITION BY number)
    FROM turns ORDER BY position"""

_SELECT_FUNDING: Final = f"""
    SELECT t.id, t.answer FROM transactions t JOIN accounts payer ON payer.id = t.from_account
    WHERE t.type = '{chart.TRANSFER}' AND payer.kind = '{chart.CASH}' LIMIT 1"""

_SELECT_PAYMENTS: Final = f"""
    SELECT DISTINCT ON (to_account) id, answer FROM transactions
    WHERE type = '{chart.POS_PAYMENT}' AND status = 'completed' ORDER BY to_account, id"""

_INSERT_MERCHANTS: Final = """
    INSERT INTO merchants
    SELECT nth - 1, to_account, channel, currency, scope, context, model.answer, 0
    FROM unnest($1::bigint[], $2::bytea[]) WITH ORDINALITY AS model (id, answer, nth)
    JOIN transactions USING (id)"""

_INSERT_FUNDINGS: Final = """
    WITH new AS (
        SELECT $4 + payers.number * $5 AS id,
               $6::timestamptz + payers.number * interval '1 millisecond' AS moment,
               account_id, name_number, price * paid + final_balance AS funding
        FROM payers JOIN turns ON turns.payer = payers.number AND nth = 0
        WHERE payers.number BETWEEN $1 AND $2
    ), funded AS (
        INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency,
                                  from_account, to_account, to_balance, answer, created_at,
                                  completed_at)
        SELECT new.id, model.type, model.status, model.channel, funding, 0, model.currency,
               model.from_account, account_id, funding, {answer}, moment, moment
        FROM new JOIN fundings form USING (name_number)
        JOIN transactions model ON model.id = $3
        WHERE funding > 0
        ORDER BY new.id
        RETURNING id, from_account, to_account, amount)
    INSERT INTO entries (transaction_id, position, debit_account, credit_account, amount)
    SELECT id, 0, from_account, to_account, amount FROM funded ORDER BY id"""

_INSERT_PAYMENTS: Final = f"""
    WITH due AS (
        SELECT number, number % $3 AS position, number / $3 AS round, number % $4 AS merchant,
               number * $9 / $5 AS elapsed
        FROM generate_series($1::bigint, $2::bigint) AS number
    ), new AS (
        SELECT $6 + elapsed * $7 AS id, account_id, serial, price, fee, merchants.*,
               $8::timestamptz + elapsed * interval '1 millisecond' AS moment,
               final_balance + (paid - 1 - round * slots - nth) * price AS from_balance,
               revenue + sum(price - fee) OVER (PARTITION BY merchant ORDER BY due.number)
                   AS to_balance,
               gen_random_uuid()::text AS request_id
        FROM due JOIN turns USING (position) JOIN payers ON payers.number = payer
        JOIN merchants USING (merchant)
    ), paid AS (
        INSERT INTO transactions (
            id, type, status, channel, amount, fee_amount, currency, from_account, to_account,
            from_balance, to_balance, card_serial, usage_day, scope, request_id, fingerprint,
            answer, context, created_at, completed_at)
        SELECT id, '{chart.POS_PAYMENT}', 'completed', channel, price, fee, currency, account_id,
               to_account, from_balance, to_balance, serial, (moment AT TIME ZONE $10)::date,
               scope, request_id, decode(md5(request_id), 'hex'), {{answer}}, context, moment,
               moment
        FROM new ORDER BY id
        RETURNING id, from_account, to_account, amount, fee_amount
    ), posted AS (
        INSERT INTO entries (transaction_id, position, debit_account, credit_account, amount)
        SELECT id, position, debit, credit, moved
        FROM paid
        CROSS JOIN (SELECT id AS fees FROM accounts WHERE kind = '{chart.FEES}') AS platform
        CROSS JOIN LATERAL (VALUES (0, from_account, to_account, amount),
                                   (1, to_account, fees, fee_amount))
            AS entry (position, debit, credit, moved)
        ORDER BY id, position)
    UPDATE merchants SET revenue = revenue + taken
    FROM (SELECT to_account, sum(amount - fee_amount)::bigint AS taken FROM paid
          GROUP BY to_account) AS taken
    WHERE merchants.to_account = taken.to_account"""

_SELECT_PLATFORM_ACCOUNT: Final = """
    SELECT payer.id, payer.public_name AS name
    FROM transactions t JOIN accounts payer ON payer.id = t.from_account WHERE t.id = $1"""

_INSERT_PAYOUT: Final = """
    WITH paid_out AS (
        INSERT INTO transactions (id, type, status, channel, amount, fee_amount, currency,
                                  from_account, to_account, from_balance, answer, created_at,
                                  completed_at)
        SELECT $1, type, status, channel, $3, 0, currency, $4, $5, 0, $6, $7, $7
        FROM transactions WHERE id = $2
        RETURNING id, from_account, to_account, amount)
    INSERT INTO entries (transaction_id, position, debit_account, credit_account, amount)
    SELECT id, 0, from_account, to_account, amount FROM paid_out"""

_INSERT_ROLLUPS: Final = """
    INSERT INTO figures
    SELECT date_bin('15 minutes', created_at, '2000-01-01Z'), type,
           CASE WHEN status IN ('failed', 'under_review') THEN status ELSE 'completed' END,
           failure_code, -1, count(*), sum(amount), sum(fee_amount)
    FROM transactions GROUP BY 1, 2, 3, 4"""

_INSERT_USAGE: Final = f"""
    INSERT INTO used
    WITH sent AS (
        SELECT from_account, usage_day, amount FROM transactions
        WHERE type = '{chart.POS_PAYMENT}' AND id >= $1 AND id < $2
    ), last AS (SELECT from_account, max(usage_day) AS day FROM sent GROUP BY from_account)
    SELECT from_account, day, sum(amount) FILTER (WHERE usage_day = day), sum(amount)
    FROM sent JOIN last USING (from_account)
    WHERE usage_day >= date_trunc('month', day)
    GROUP BY from_account, day"""

_UPDATE_DATASET_USAGE: Final = """
    UPDATE accounts SET
        usage_day = coalesce(usage_day, day),
        day_used = CASE WHEN usage_day IS NULL THEN used.day_used ELSE accounts.day_used END,
        month_used = accounts.month_used
            + CASE WHEN date_trunc('month', coalesce(usage_day, day)) = date_trunc('month', day)
                   THEN used.month_used ELSE 0 END
    FROM used WHERE accounts.id = used.account_id"""
