"""Additional subscribers, each with a wallet, a PIN and a card.

Their identifiers and serials are interleaved with the dataset's, so that active payers are spread
over every part of an index.
"""

from datetime import datetime
from random import Random
from typing import Final

import asyncpg

from tapgate.core.public_names import mask_person_name
from tapgate.ledger import chart
from tapgate.ledger.rules.loaded_rules import load_rules
from tapgate_sandbox.demo import country

#: Maximum accounts per dataset card, including the card's own. Each has its own ID slot.
MAX_PEOPLE_PER_CARD: Final = 1_000
_NAME_COUNT: Final = 500
#: Prices of historical payments, in minor units. A payer always pays the same price.
_PRICES: Final = range(500, 5_000, 100)
#: One in this many dataset payers has several turns per round instead of one.
_REGULAR_PAYER_INTERVAL: Final = 100
_REGULAR_PAYER_SLOTS: Final = 10

_CREATE_TABLES: Final = """
    CREATE TEMP TABLE names (number int PRIMARY KEY, first_name text, last_name text, masked text);
    CREATE TEMP TABLE payers (
        number bigint PRIMARY KEY, is_new boolean, owner_id bigint, account_id bigint,
        card_id bigint, serial text, name_number bigint, slots bigint, price bigint, fee bigint,
        final_balance bigint)"""

#: A new payer has the identifiers of a dataset payer with a new slot, which is stored in the bits
#: above the 12-bit counter.
_INSERT_PAYERS: Final = """
    INSERT INTO payers
    WITH dataset_payers AS MATERIALIZED (
        SELECT row_number() OVER (ORDER BY id) - 1 AS number, false AS is_new,
               subscriber_id AS owner_id, account_id, id AS card_id, serial,
               0::bigint AS name_number
        FROM cards WHERE type = 'PARENT'
    ), size AS (SELECT count(*) AS cards FROM dataset_payers
    ), all_payers AS (
        SELECT * FROM dataset_payers
        UNION ALL
        SELECT generated.number, true, owner_id # (generated.slot << 12),
               account_id # (generated.slot << 12),
               card_id # (generated.slot << 12), serial || '-' || to_char(generated.slot, 'FM0000'),
               1 + generated.number % $2
        FROM (SELECT number, number / cards AS slot, number % cards AS other
              FROM size, generate_series(cards, $1::bigint - 1) AS number) AS generated
        JOIN dataset_payers ON dataset_payers.number = generated.other
    )
    SELECT *, CASE WHEN NOT is_new AND number % $5 = 1 THEN $6::bigint ELSE 1 END,
           ($3::bigint[])[(1 + number % cardinality($3))::int],
           ($4::bigint[])[(1 + number % cardinality($4))::int],
           CASE WHEN is_new THEN 10000 * (1 + number % 50) ELSE 0 END
    FROM all_payers"""


async def plan_payers(connection: asyncpg.Connection, *, accounts: int, currency: str) -> None:
    """Plan the payers, the price of their payments and their final balances.

    The dataset's payers have a final balance of 0, since their current balances come from later
    transactions.
    """
    await connection.execute(_CREATE_TABLES)
    rng = Random(23226)
    people = [country.Person("Aminata", "Kamara", "")]
    people += [country.draw_person(rng) for _ in range(_NAME_COUNT)]
    await connection.executemany(
        "INSERT INTO names VALUES ($1, $2, $3, $4)",
        [
            (number, person.first_name, person.last_name, mask_person_name(person.name))
            for number, person in enumerate(people)
        ],
    )
    rules = await load_rules(connection, currency)
    fees = [rules.calculate_fee(chart.POS_PAYMENT, price)[0] for price in _PRICES]
    await connection.execute(
        _INSERT_PAYERS,
        accounts,
        _NAME_COUNT,
        list(_PRICES),
        fees,
        _REGULAR_PAYER_INTERVAL,
        _REGULAR_PAYER_SLOTS,
    )
    await connection.execute("ANALYZE payers")


async def insert_people(
    connection: asyncpg.Connection, first: int, last: int, *, since: datetime, currency: str
) -> None:
    """Insert the new subscribers numbered `first` to `last`, with balances and limit usage."""
    bounds = (first, last)
    await connection.execute(_INSERT_ACCOUNTS, *bounds, currency, since)
    await connection.execute(_INSERT_SUBSCRIBERS, *bounds, since)
    await connection.execute(_INSERT_PINS, *bounds, since)
    await connection.execute(_INSERT_CARDS, *bounds, since)


_NEW_IN_RANGE: Final = "is_new AND payers.number BETWEEN $1 AND $2"

_INSERT_ACCOUNTS: Final = f"""
    INSERT INTO accounts (id, kind, owner_id, holder_name, public_name, currency, kyc_level,
                          checked, balance, usage_day, day_used, month_used, created_at, updated_at)
    SELECT account_id, 'wallet', owner_id, first_name || ' ' || last_name, masked, $3, 1, true,
           final_balance, day, coalesce(day_used, 0), coalesce(month_used, 0), $4, $4
    FROM payers JOIN names ON names.number = name_number LEFT JOIN used USING (account_id)
    WHERE {_NEW_IN_RANGE}"""

_INSERT_SUBSCRIBERS: Final = f"""
    INSERT INTO subscribers (id, account_id, phone_number, first_name, last_name, created_at,
                             updated_at)
    SELECT owner_id, account_id, '+' || 23226000000 + payers.number, first_name, last_name, $3, $3
    FROM payers JOIN names ON names.number = name_number
    WHERE {_NEW_IN_RANGE}"""

#: Copies the PIN rows of the dataset's payers.
_INSERT_PINS: Final = f"""
    INSERT INTO pins (holder_id, key_id, salt, verifier, changed_at)
    SELECT payers.owner_id, key_id, salt, verifier, $3
    FROM payers
    JOIN payers other
      ON other.number = payers.number % (SELECT count(*) FROM payers WHERE NOT is_new)
    JOIN pins ON pins.holder_id = other.owner_id
    WHERE payers.{_NEW_IN_RANGE}"""

_INSERT_CARDS: Final = f"""
    INSERT INTO cards (id, serial, uid, type, status, subscriber_id, account_id, pin_holder_id,
                       linked_at, created_at, updated_at)
    SELECT card_id, serial,
           regexp_replace(upper(lpad(to_hex(payers.number), 14, '0')), '(..)(?=.)', '\\1:', 'g'),
           'PARENT', 'ACTIVE', owner_id, account_id, owner_id, $3, $3, $3
    FROM payers
    WHERE {_NEW_IN_RANGE}"""
