"""Limits on what can be created for one owner.

Every payment writes a delivery for each webhook endpoint of its owner, and staff read every request
that waits for approval. What exists above a limit stays, but nothing can be added.
"""

from typing import Final, NamedTuple

from tapgate.auth.owners import Owner
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.errors import ApiError, Code

_RETRY_SECONDS: Final = "86400"


class OwnerLimit(NamedTuple):
    """Max. rows per owner, which `rows` selects by the owner's ID, and the error's message."""

    name: str
    maximum: int
    rows: str
    message: str


WEBHOOK_ENDPOINTS: Final = OwnerLimit(
    "webhook_endpoints",
    20,
    "webhook_endpoints WHERE owner_id = $1 AND deleted_at IS NULL",
    "There can be {} webhook endpoints. Delete one first.",
)
#: A payment writes a delivery for each of these too.
PLATFORM_WEBHOOK_ENDPOINTS: Final = OwnerLimit(
    "platform_webhook_endpoints",
    100,
    "webhook_endpoints WHERE owner_id IS NULL AND $1::bigint = 0 AND deleted_at IS NULL",
    "There can be {} webhook endpoints. Delete one first.",
)
USERS: Final = OwnerLimit(
    "users",
    500,
    "admins WHERE owner_id = $1",
    "There can be {} users, including disabled ones. Enable a disabled user instead.",
)
TERMINALS: Final = OwnerLimit(
    "terminals",
    1_000,
    "terminals WHERE processor_id = $1",
    "There can be {} terminals, including blocked ones. Unblock a terminal instead.",
)
API_KEYS: Final = OwnerLimit(
    "api_keys",
    50,
    "api_keys WHERE owner_id = $1 AND deleted_at IS NULL",
    "There can be {} API keys. Delete one first.",
)
#: Of a terminal, or of a processor or partner itself.
SIGNING_KEYS: Final = OwnerLimit(
    "signing_keys",
    20,
    """hmac_keys WHERE (terminal_id = $1 OR partner_id = $1
                        OR processor_id = $1 AND terminal_id IS NULL) AND deleted_at IS NULL""",
    "There can be {} signing keys. Delete one first.",
)
BANK_ACCOUNTS: Final = OwnerLimit(
    "bank_accounts",
    20,
    "bank_accounts WHERE owner_id = $1 AND status <> 'blocked'",
    "There can be {} bank accounts. Block one first.",
)
FLOAT_REQUESTS: Final = OwnerLimit(
    "float_requests",
    20,
    "float_requests WHERE agent_id = $1 AND status = 'open'",
    "There can be {} open float requests. Cancel one first.",
)
PENDING_APPROVALS: Final = OwnerLimit(
    "pending_approvals",
    50,
    """approvals JOIN admins ON admins.id = approvals.maker_id
       WHERE admins.owner_id = $1 AND approvals.status = 'pending'""",
    "There can be {} requests that wait for approval. Cancel one first, or wait for a decision.",
)


async def require_room(tx: Transaction, limit: OwnerLimit, owner: Owner | int | None) -> None:
    """Raise 429 if the owner has as many rows as allowed. None is the platform.

    Concurrent requests of an owner wait for each other, so they cannot exceed the limit.
    """
    owner_id = owner.id if isinstance(owner, Owner) else owner or 0
    await tx.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, $2))", limit.name, owner_id)
    if await tx.fetchval(f"SELECT count(*) FROM {limit.rows}", owner_id) >= limit.maximum:
        raise ApiError(
            Code.RATE_LIMITED,
            limit.message.format(limit.maximum),
            details={"limit": limit.name, "maximum": limit.maximum},
            headers={"Retry-After": _RETRY_SECONDS},
        )
