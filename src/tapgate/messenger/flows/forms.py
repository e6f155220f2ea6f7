"""Forms that were sent to somebody, by the random token that each is recognised by.

Whoever knows a token may enter a PIN for what the form asks, so only its hash is kept.
"""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Literal

import asyncpg
import msgspec

from tapgate.messenger.model.common import Language
from tapgate.messenger.model.replies import PinRequest
from tapgate.store.database import Database

FORM_LIFETIME = timedelta(minutes=5)
#: Kept per person, the newest: an expired form is still answered in the person's language.
MAX_FORMS_PER_PERSON = 20

_TOKEN_BYTES = 32


class Form(msgspec.Struct, frozen=True, kw_only=True):
    token_hash: bytes
    address: str
    form: Literal["pin", "new_pin", "change_pin"]
    #: What is entered is for this and nothing else.
    operation: str
    language: Language
    text: str


async def issue(
    tx: asyncpg.Connection, *, address: str, ask: PinRequest, language: Language, now: datetime
) -> str:
    """Return a new form's token. An older form for the same operation can no longer be used."""
    await tx.execute(
        """DELETE FROM messenger.forms WHERE token_hash IN (
               SELECT token_hash FROM messenger.forms WHERE address = $1
               ORDER BY expires_at DESC OFFSET $2)""",
        address,
        MAX_FORMS_PER_PERSON - 1,
    )
    await tx.execute(
        """UPDATE messenger.forms SET used_at = $3
           WHERE address = $1 AND operation = $2 AND used_at IS NULL""",
        address,
        ask.operation,
        now,
    )
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    await tx.execute(
        """INSERT INTO messenger.forms
               (token_hash, address, form, operation, language, text, expires_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7)""",
        hash_token(token),
        address,
        ask.form,
        ask.operation,
        language,
        ask.text,
        now + FORM_LIFETIME,
    )
    return token


async def find(connection: asyncpg.Connection, token: str, now: datetime) -> Form | None:
    """A form that can still be used."""
    row = await connection.fetchrow(
        """SELECT token_hash, address, form, operation, language, text FROM messenger.forms
           WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2""",
        hash_token(token),
        now,
    )
    return None if row is None else Form(**row)


async def is_open(database: Database, token_hash: bytes, now: datetime) -> bool:
    """Whether a form that was found a moment ago still is one."""
    found: bool = await database.fetchval(
        """SELECT EXISTS (SELECT FROM messenger.forms
                          WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2)""",
        token_hash,
        now,
    )
    return found


async def get_language(connection: asyncpg.Connection, token: str) -> Language | None:
    """Also of a form that has ended."""
    language: Language | None = await connection.fetchval(
        "SELECT language FROM messenger.forms WHERE token_hash = $1", hash_token(token)
    )
    return language


async def mark_used(tx: asyncpg.Connection, token_hash: bytes, now: datetime) -> bool:
    """True for one caller only. Whoever found a form in time may use it a little later: what was
    entered has been acted on by then."""
    used = await tx.fetchval(
        """UPDATE messenger.forms SET used_at = $2
           WHERE token_hash = $1 AND used_at IS NULL RETURNING true""",
        token_hash,
        now,
    )
    return used is not None


def hash_token(token: str) -> bytes:
    """Without a key: a token is far too long to be guessed."""
    return hashlib.sha256(token.encode()).digest()
