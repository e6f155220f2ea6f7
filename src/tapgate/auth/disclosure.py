"""Disclosure rules for restricted subscribers' personal data.

Responses, events, messages, files, and the console all apply these rules. Internal services and
processors, including their terminals, receive the personal data. An admin receives it for a limited
time after verifying a code sent to the subscriber's phone. API keys, partners, and audiences
without a principal never receive it.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Final, NamedTuple, TypeAlias

import asyncpg

from tapgate.auth.principals import Principal
from tapgate.runtime.store.conditions import Conditions
from tapgate.runtime.store.database import Database
from tapgate_client import ids

#: None is an audience without a principal: a webhook endpoint, a partner's webhook, or a message to
#: another person.
Audience: TypeAlias = Principal | None
Reader: TypeAlias = Database | asyncpg.Connection

_UNRESTRICTED_KINDS: Final = ("service", "processor")

#: Accounts that each subject concerns, including accounts that belong to no subscriber.
_SUBJECT_ACCOUNTS: Final = """
    SELECT 'subscriber' AS kind, id, NULL AS serial, account_id FROM subscribers
    WHERE id = ANY ({subscriber}::bigint[])
    UNION ALL
    SELECT 'card', NULL, serial, account_id FROM cards WHERE serial = ANY ({card}::text[])
    UNION ALL
    SELECT 'account', id, NULL, id FROM accounts WHERE id = ANY ({account}::bigint[])
    UNION ALL
    SELECT 'transaction', id, NULL, unnest(ARRAY[from_account, to_account]) FROM transactions
    WHERE id = ANY ({transaction}::bigint[])
    UNION ALL
    SELECT 'alert', alert.id, NULL, subject.account_id
    FROM alerts alert JOIN subscribers subject ON subject.id = alert.subscriber_id
    WHERE alert.id = ANY ({alert}::bigint[])
    UNION ALL
    SELECT 'alert', alert.id, NULL, unnest(ARRAY[t.from_account, t.to_account])
    FROM alerts alert JOIN transactions t ON t.id = alert.transaction_id
    WHERE alert.id = ANY ({alert}::bigint[])
    UNION ALL
    SELECT 'support', request.id, NULL, subject.account_id
    FROM support_requests request
    JOIN subscribers subject ON subject.id = request.subscriber_id
    WHERE request.id = ANY ({support}::bigint[])
    UNION ALL
    SELECT 'support', request.id, NULL, subject.account_id
    FROM support_requests request
    JOIN subscribers subject ON subject.phone_number = request.phone_number
    WHERE request.id = ANY ({support}::bigint[])
    UNION ALL
    SELECT 'dispute', dispute.id, NULL, subject.account_id
    FROM disputes dispute JOIN subscribers subject ON subject.id = dispute.subscriber_id
    WHERE dispute.id = ANY ({dispute}::bigint[])"""

_ID_PREFIXES: Final = {
    "subscriber": ids.SUBSCRIBER,
    "account": ids.ACCOUNT,
    "transaction": ids.TRANSACTION,
    "alert": ids.ALERT,
    "support": ids.SUPPORT_REQUEST,
    "dispute": ids.DISPUTE,
}


class Subject(NamedTuple):
    """Resource that an event, an audit entry or an approval is about.

    Only subscribers, cards, accounts, transactions, alerts, support requests, and disputes can be
    hidden.
    `public_id` is the serial if the subject is a card.
    """

    kind: str
    public_id: str


def has_full_disclosure(audience: Audience) -> bool:
    """Return whether the audience receives every subscriber's personal data."""
    return audience is not None and audience.kind in _UNRESTRICTED_KINDS


def build_hidden_condition(conditions: Conditions, audience: Audience, now: datetime) -> str | None:
    """Return the SQL condition under which a row of `subscribers s` is hidden from an audience.

    Returns None if no subscriber is hidden from the audience.
    """
    if has_full_disclosure(audience):
        return None
    if audience is None or audience.kind != "admin":
        return "s.restricted"
    return f"""s.restricted AND NOT EXISTS (
        SELECT FROM restricted_access access
        WHERE access.subscriber_id = s.id
          AND access.admin_id = {conditions.bind(audience.admin_id)}
          AND access.expires_at > {conditions.bind(now)})"""


async def is_hidden(reader: Reader, audience: Audience, now: datetime, subscriber_id: int) -> bool:
    """Return whether a subscriber's personal data is hidden from the audience."""
    conditions = Conditions()
    hidden = build_hidden_condition(conditions, audience, now)
    if hidden is None:
        return False
    exists: bool = await reader.fetchval(
        f"""SELECT EXISTS (SELECT FROM subscribers s
                           WHERE s.id = {conditions.bind(subscriber_id)} AND {hidden})""",
        *conditions.values,
    )
    return exists


async def find_hidden_accounts(
    reader: Reader, audience: Audience, now: datetime, account_ids: Collection[int | None]
) -> set[int]:
    """Return account ids whose holders are hidden from the audience."""
    conditions = Conditions()
    hidden = build_hidden_condition(conditions, audience, now)
    if hidden is None or not account_ids:
        return set()
    rows = await reader.fetch(
        f"""SELECT s.account_id FROM subscribers s
            WHERE s.account_id = ANY ({conditions.bind(list(account_ids))}::bigint[])
              AND {hidden}""",
        *conditions.values,
    )
    return {row["account_id"] for row in rows}


async def find_hidden_subjects(
    reader: Reader, audience: Audience, now: datetime, subjects: Collection[Subject]
) -> set[Subject]:
    """Return the subjects that concern a subscriber hidden from the audience."""
    conditions = Conditions()
    hidden = build_hidden_condition(conditions, audience, now)
    if hidden is None or not subjects:
        return set()

    def decode_ids(kind: str) -> list[int | None]:
        prefix = _ID_PREFIXES[kind]
        return [
            ids.decode(prefix, subject.public_id) for subject in subjects if subject.kind == kind
        ]

    accounts = _SUBJECT_ACCOUNTS.format(
        card=conditions.bind([subject.public_id for subject in subjects if subject.kind == "card"]),
        **{kind: conditions.bind(decode_ids(kind)) for kind in _ID_PREFIXES},
    )
    rows = await reader.fetch(
        f"""SELECT DISTINCT concerned.kind, concerned.id, concerned.serial
            FROM ({accounts}) AS concerned
            JOIN subscribers s ON s.account_id = concerned.account_id WHERE {hidden}""",
        *conditions.values,
    )
    return {
        Subject(row["kind"], row["serial"] or ids.encode(_ID_PREFIXES[row["kind"]], row["id"]))
        for row in rows
    }
