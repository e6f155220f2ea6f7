"""Secrets that an admin has received and that are still valid, by kind.

A secret is known to the admin who created it or rotated it last, and a previous one until its grace
period ends.
"""

from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from tapgate.auth.api_keys import ApiKey, ApiKeys
from tapgate.core.records import build_record
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.schemas.admin import (
    KnownPartnerSecret,
    KnownSigningKey,
    KnownWebhookSecret,
)

R = TypeVar("R", bound=msgspec.Struct)

#: Of each kind, newest first.
MAX_LISTED: Final = 100

_SIGNING_KEYS: Final = """
    SELECT key.id, key.processor_id, key.terminal_id, key.partner_id, key.created_at,
           key.last_used_at, terminals.name AS terminal_name, accounts.holder_name AS owner_name
    FROM hmac_keys AS key
    LEFT JOIN processors ON processors.id = key.processor_id
    LEFT JOIN partners ON partners.id = key.partner_id
    LEFT JOIN terminals ON terminals.id = key.terminal_id
    JOIN accounts ON accounts.id = coalesce(processors.account_id, partners.account_id)
    WHERE key.created_by = $1 AND key.deleted_at IS NULL
    ORDER BY key.id DESC LIMIT $2"""
_WEBHOOK_SECRETS: Final = """
    SELECT id, url FROM webhook_endpoints
    WHERE deleted_at IS NULL
      AND (coalesce(rotated_by, created_by) = $1
           OR created_by = $1 AND previous_secret_expires_at > $3)
    ORDER BY id DESC LIMIT $2"""
_PARTNER_SECRETS: Final = """
    SELECT partners.id, accounts.holder_name AS name
    FROM partners JOIN accounts ON accounts.id = partners.account_id
    WHERE partners.webhook_secret_by = $1
    ORDER BY partners.id DESC LIMIT $2"""


class KnownSecrets(msgspec.Struct, frozen=True, kw_only=True):
    api_keys: list[ApiKey]
    signing_keys: list[KnownSigningKey]
    webhook_endpoints: list[KnownWebhookSecret]
    partners: list[KnownPartnerSecret]


async def load_known_secrets(
    database: Database, api_keys: ApiKeys, admin_id: int, now: datetime
) -> KnownSecrets:
    """Return the valid secrets that an admin may have a copy of."""

    async def list_records(
        sql: str, record_type: type[R], id_field: str, prefix: str, *values: Any
    ) -> list[R]:
        rows = await database.fetch(sql, admin_id, MAX_LISTED, *values)
        return [
            build_record(record_type, row, **{id_field: ids.encode(prefix, row["id"])})
            for row in rows
        ]

    return KnownSecrets(
        api_keys=await api_keys.list_known(admin_id, limit=MAX_LISTED),
        signing_keys=await list_records(_SIGNING_KEYS, KnownSigningKey, "api_key_id", ids.KEY),
        webhook_endpoints=await list_records(
            _WEBHOOK_SECRETS, KnownWebhookSecret, "id", ids.WEBHOOK_ENDPOINT, now
        ),
        partners=await list_records(_PARTNER_SECRETS, KnownPartnerSecret, "id", ids.PARTNER),
    )
