"""The people who asked for a transaction, and may not release it from review."""

from typing import Final

from tapgate.auth.principals import Principal
from tapgate.business.approval_rules.queries import find_admin, load_linked_people
from tapgate.runtime.store.database import Database
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.transactions import Channel

_SIGNER_PREFIXES: Final = (ids.PROCESSOR, ids.TERMINAL, ids.PARTNER)


async def list_requesters(reader: Database | Transaction, transaction_id: int) -> list[str]:
    """Return the people who asked for a transaction: an admin, or those who know the secret.

    Everyone who created or rotated an API key has had its secret. The same applies to everyone who
    created a signing key of the processor, terminal or partner that signed the request, even if the
    key was deleted later, and to the admin who received the webhook secret of the partner.
    Transactions by customers and services have no requester.
    """
    row = await reader.fetchrow(
        """SELECT coalesce(context ->> 'requested_by', scope) AS requested_by,
                  context ->> 'approval_id' AS approval_id,
                  CASE WHEN channel = $2 THEN partner_id END AS partner_id
           FROM transactions WHERE id = $1""",
        transaction_id,
        Channel.PARTNER,
    )
    if row is None:
        return []
    admin_ids, people = [], list[str]()
    requested_by = row["requested_by"] or ""
    admin_id, key_id = (
        ids.decode(ids.ADMIN, requested_by),
        ids.decode(ids.KEY, requested_by),
    )
    if admin_id is not None:
        admin_ids.append(admin_id)
    elif key_id is not None:
        holders = await reader.fetchrow(
            "SELECT created_by, rotated_by FROM api_keys WHERE id = $1", key_id
        )
        admin_ids += [] if holders is None else [holders["created_by"], *holders["rotated_by"]]
    signers = [ids.decode(prefix, requested_by) for prefix in _SIGNER_PREFIXES]
    admin_ids += await _list_key_creators(reader, [key_id, row["partner_id"], *signers])
    if row["approval_id"] is not None:
        people += await reader.fetchval(
            "SELECT maker_person || other_makers FROM approvals WHERE id = $1",
            ids.decode(ids.APPROVAL, row["approval_id"]),
        )
    return people + [(await find_admin(reader, each)).person for each in admin_ids]


async def _list_key_creators(
    reader: Database | Transaction, owners_and_key: list[int | None]
) -> list[int]:
    """Return the admins who created an owner's signing keys, by the owner's ID or one of its keys.

    Requests by older owners have a key ID as their scope. IDs are unique across tables.
    """
    rows = await reader.fetch(
        """WITH owners AS (
               SELECT unnest($1::bigint[]) AS id
               UNION
               SELECT coalesce(terminal_id, processor_id, partner_id) FROM hmac_keys
               WHERE id = ANY ($1)
           )
           SELECT DISTINCT created_by FROM hmac_keys
           WHERE coalesce(terminal_id, processor_id, partner_id) IN (SELECT id FROM owners)
             AND created_by IS NOT NULL
           UNION
           SELECT webhook_secret_by FROM partners
           WHERE id IN (SELECT id FROM owners) AND webhook_secret_by IS NOT NULL""",
        [each for each in owners_and_key if each is not None],
    )
    return [row["created_by"] for row in rows]


async def require_other_person(
    reader: Database | Transaction, principal: Principal, requesters: list[str]
) -> None:
    """Raise 403 if the admin may be one of the people who asked for the transaction."""
    if principal.admin_id is None or not requesters:
        return
    linked, admin = await load_linked_people(reader), await find_admin(reader, principal.admin_id)
    if any(linked.may_be_same(admin.person, requester) for requester in requesters):
        raise ApiError(
            Code.FORBIDDEN,
            "You asked for this transaction, so another admin must release it.",
            details={"required": ["another admin"]},
        )
