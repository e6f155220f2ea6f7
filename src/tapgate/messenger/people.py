"""Stores the messenger's users: language, verified phone, trust and saved recipients."""

from datetime import datetime

import asyncpg
import msgspec

from tapgate.core.public_names import clean_person_name
from tapgate.messenger.model import Person, Recipient
from tapgate.runtime.store.database import Database


async def load_person(database: Database | asyncpg.Connection, address: str) -> Person:
    """Return the stored person, or a person with default values for an unknown address."""
    row = await database.fetchrow(
        """SELECT p.phone, p.language, coalesce(p.trusted, true) AS trusted, p.support, p.role,
                  (SELECT jsonb_agg(jsonb_build_object('name', r.name,
                                                       'card_serial', r.card_serial)
                                    ORDER BY r.name, r.card_serial)
                   FROM messenger.recipients r WHERE r.address = a.address) AS recipients
           FROM (SELECT $1::text AS address) a
           LEFT JOIN messenger.people p ON p.address = a.address""",
        address,
    )
    assert row is not None, "the subquery always returns one row"
    return Person(
        address=address,
        phone=address if address.startswith("+") else row["phone"],
        language=row["language"],
        trusted=row["trusted"],
        support=row["support"],
        role=row["role"],
        recipients=tuple(
            msgspec.structs.replace(recipient, name=clean_person_name(recipient.name))
            for recipient in msgspec.convert(row["recipients"] or (), tuple[Recipient, ...])
        ),
    )


async def save_person(tx: asyncpg.Connection, before: Person, after: Person, now: datetime) -> None:
    """Save a person. A language is due at the gateway if it or the phone number is new."""
    if before == after:
        return
    await tx.execute(
        """INSERT INTO messenger.people AS old
               (address, phone, language, trusted, support, updated_at, role, language_due_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7,
                   CASE WHEN $3::text IS NOT NULL THEN $6::timestamptz END)
           ON CONFLICT (address) DO UPDATE SET phone = excluded.phone,
               language = excluded.language, trusted = excluded.trusted,
               support = excluded.support, updated_at = excluded.updated_at,
               role = excluded.role,
               language_due_at = CASE
                   WHEN (old.phone, old.language) IS DISTINCT FROM
                        (excluded.phone, excluded.language)
                   THEN excluded.language_due_at ELSE old.language_due_at END""",
        after.address,
        after.phone,
        after.language,
        after.trusted,
        after.support,
        now,
        after.role,
    )
    if before.recipients != after.recipients:
        await _save_recipients(tx, after, now)


async def _save_recipients(tx: asyncpg.Connection, person: Person, now: datetime) -> None:
    payees = [recipient.payee for recipient in person.recipients]
    await tx.execute(
        "DELETE FROM messenger.recipients WHERE address = $1 AND card_serial <> ALL($2)",
        person.address,
        payees,
    )
    await tx.execute(
        """INSERT INTO messenger.recipients (address, card_serial, name, saved_at)
           SELECT $1, unnest($2::text[]), unnest($3::text[]), $4
           ON CONFLICT (address, card_serial) DO UPDATE SET name = excluded.name""",
        person.address,
        payees,
        [recipient.name for recipient in person.recipients],
        now,
    )
