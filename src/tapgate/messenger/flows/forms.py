"""Issued forms, each identified by a random token.

A client with the token can submit a PIN for the form's operation, so only the token's hash is
stored.
"""

import hashlib
import secrets
from datetime import datetime, timedelta

import asyncpg
import msgspec

from tapgate.messenger.model import FormKind, Language, PinRequest
from tapgate.runtime.store.database import Database

FORM_LIFETIME = timedelta(minutes=5)
#: Older forms are deleted. Expired forms are kept, because their language selects the error text.
MAX_FORMS_PER_PERSON = 20

_TOKEN_BYTES = 32


class Form(msgspec.Struct, frozen=True, kw_only=True):
    token_hash: bytes
    address: str
    form: FormKind
    #: The only operation that the submitted PIN authorizes.
    operation: str
    language: Language
    text: str


async def issue(
    tx: asyncpg.Connection,
    *,
    address: str,
    pin_request: PinRequest,
    language: Language,
    now: datetime,
) -> str:
    """Issue a form and return its token. Invalidates earlier forms for the same operation."""
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
        pin_request.operation,
        now,
    )
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    await tx.execute(
        """INSERT INTO messenger.forms
               (token_hash, address, form, operation, language, text, expires_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7)""",
        hash_token(token),
        address,
        pin_request.form,
        pin_request.operation,
        language,
        pin_request.text,
        now + FORM_LIFETIME,
    )
    return token


async def find(
    connection: asyncpg.Connection | Database, token_hash: bytes, now: datetime
) -> Form | None:
    """Return the form with this token if it is unused and has not expired."""
    row = await connection.fetchrow(
        """SELECT token_hash, address, form, operation, language, text FROM messenger.forms
           WHERE token_hash = $1 AND used_at IS NULL AND expires_at > $2""",
        token_hash,
        now,
    )
    return None if row is None else Form(**row)


async def get_language(connection: asyncpg.Connection, token_hash: bytes) -> Language | None:
    """Return a form's language, even if it is used or expired, or None for an unknown token."""
    language: Language | None = await connection.fetchval(
        "SELECT language FROM messenger.forms WHERE token_hash = $1", token_hash
    )
    return language


async def mark_used(tx: asyncpg.Connection, token_hash: bytes, now: datetime) -> bool:
    """Mark a form as used; return False if it was already used.

    Expiry is not checked again: the caller found the form in time and has already processed the
    submission.
    """
    used = await tx.fetchval(
        """UPDATE messenger.forms SET used_at = $2
           WHERE token_hash = $1 AND used_at IS NULL RETURNING true""",
        token_hash,
        now,
    )
    return used is not None


def hash_token(token: str) -> bytes:
    """Hash a token. The hash needs no key, because a token is too long to guess."""
    return hashlib.sha256(token.encode()).digest()
