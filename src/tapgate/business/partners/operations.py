"""Operations on partners and their keys."""

from typing import NamedTuple

import asyncpg
import msgspec

from tapgate.auth.actors import Actor
from tapgate.auth.hmac_keys import HmacKeys, NewHmacKey
from tapgate.auth.webhook_secrets import WebhookSecrets
from tapgate.business.partners import model, queries
from tapgate.business.partners.model import Partner
from tapgate.events.audit.trail import AuditTrail
from tapgate.ledger import chart
from tapgate.ledger.accounts import open_account
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import ids, money
from tapgate_client.errors import Code, invalid_field, require_found
from tapgate_client.schemas.partners import NewPartner, PartnerUpdate

_trail = AuditTrail("partner")


class CreatedPartner(NamedTuple):
    partner: Partner
    key: NewHmacKey
    webhook_secret: str


async def create(
    tx: Transaction,
    actor: Actor,
    new: NewPartner,
    *,
    currency: str,
    hmac_keys: HmacKeys,
    webhook_secrets: WebhookSecrets,
) -> CreatedPartner:
    """Create a partner with its signing key and webhook secret."""
    partner = Partner(
        id=tx.new_id(),
        account_id=tx.new_id(),
        name=new.name,
        currency=currency,
        created_at=tx.now(),
        overdraft=money.parse(new.overdraft_limit or "0", currency, allow_zero=True),
    )
    webhook_secret = webhook_secrets.create(partner.id)
    await open_account(
        tx,
        id=partner.account_id,
        kind=chart.CLEARING,
        owner_id=partner.id,
        holder_name=partner.name,
        currency=currency,
        overdraft=partner.overdraft,
    )
    await queries.add(tx, partner, webhook_secret.sealed, actor.admin_id)
    key = await hmac_keys.create(tx, created_by=actor.admin_id, partner_id=partner.id)
    record = model.to_record(partner)
    changes = {
        "name": (None, record.name),
        "status": (None, record.status),
        "overdraft_limit": (None, record.overdraft_limit),
        "api_key_id": (None, ids.encode(ids.KEY, key.id)),
    }
    await _trail.record(tx, actor, record.id, "created", changes=changes)
    return CreatedPartner(partner, key, webhook_secret.secret)


async def update(tx: Transaction, actor: Actor, partner_id: int, update: PartnerUpdate) -> Partner:
    """Update the given fields. If no value changes, no audit entry is written."""
    before = await queries.lock(tx, partner_id)
    limit = update.overdraft_limit
    after = msgspec.structs.replace(
        before,
        name=before.name if update.name is None else update.name,
        overdraft=before.overdraft
        if limit is None
        else money.parse(limit, before.currency, allow_zero=True),
    )
    if after == before:
        return before
    try:
        await tx.execute(
            """UPDATE accounts SET holder_name = $2, public_name = $2, overdraft = $3,
                                   updated_at = $4
               WHERE id = $1""",
            after.account_id,
            after.name,
            after.overdraft,
            tx.now(),
        )
    except asyncpg.CheckViolationError:
        message = "must not be lower than the overdraft in use"
        raise invalid_field("overdraft_limit", message) from None
    old, new = model.to_record(before), model.to_record(after)
    await _trail.record_change(tx, actor, new.id, "updated", old, new)
    return after


async def rotate_webhook_secret(
    tx: Transaction,
    actor: Actor,
    partner_id: int,
    grace_seconds: int,
    *,
    webhook_secrets: WebhookSecrets,
) -> str:
    """Replace the webhook secret and return the new secret.

    The old secret stays valid until the grace period ends.
    """
    rotated = await webhook_secrets.rotate(
        tx, partner_id, grace_seconds=grace_seconds, received_by=actor.admin_id
    )
    secret = require_found(rotated, Code.PARTNER_NOT_FOUND)
    await _trail.record(
        tx,
        actor,
        ids.encode(ids.PARTNER, partner_id),
        "webhook_secret_rotated",
        changes={"grace_seconds": (None, grace_seconds)},
    )
    return secret
