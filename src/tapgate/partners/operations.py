"""Operations on partners: create, suspend, activate and rotate the webhook secret."""

from datetime import timedelta
from typing import NamedTuple

from tapgate import ids, money
from tapgate.api.request_context import RequestContext
from tapgate.api.transitions import Transition
from tapgate.audit.changes import diff_records
from tapgate.audit.trail import AuditTrail
from tapgate.auth.hmac_keys import NewHmacKey
from tapgate.ledger import chart
from tapgate.ledger.accounts import open_account
from tapgate.partners import model, queries
from tapgate.partners.model import Partner
from tapgate.schemas.partners import NewPartner, PartnerStatus

_trail = AuditTrail("partner")


class CreatedPartner(NamedTuple):
    partner: Partner
    key: NewHmacKey
    webhook_secret: str


async def create(request: RequestContext, new: NewPartner) -> CreatedPartner:
    """Create a partner with its signing key and webhook secret."""
    services, currency = request.services, request.services.settings.currency
    partner = Partner(
        id=services.new_id(),
        account_id=services.new_id(),
        name=new.name,
        currency=currency,
        created_at=services.clock(),
        overdraft=money.parse(new.overdraft_limit or "0", currency, allow_zero=True),
    )
    webhook_secret = services.authenticator.webhook_secrets.create(partner.id)
    async with services.transaction() as tx:
        await open_account(
            tx,
            id=partner.account_id,
            kind=chart.CLEARING,
            owner_id=partner.id,
            holder_name=partner.name,
            public_name=partner.name,
            currency=currency,
            overdraft=partner.overdraft,
        )
        await queries.add(tx, partner, webhook_secret.sealed)
        key = await services.authenticator.hmac_keys.create_for_partner(tx, partner.id)
        record = model.to_record(partner)
        await _trail.record(
            tx,
            request.actor,
            record.id,
            "created",
            changes={
                "name": (None, record.name),
                "status": (None, record.status),
                "overdraft_limit": (None, record.overdraft_limit),
                "api_key_id": (None, ids.encode(ids.KEY, key.id)),
            },
        )
    return CreatedPartner(partner, key, webhook_secret.secret)


async def suspend(request: RequestContext, partner_id: int, reason: str | None) -> Partner:
    """Suspend a partner: its keys and webhooks are rejected.

    Waits up to one second for every process to apply the change.
    """
    return await _change_status(request, partner_id, model.SUSPEND, reason)


async def activate(request: RequestContext, partner_id: int, reason: str | None) -> Partner:
    return await _change_status(request, partner_id, model.ACTIVATE, reason)


async def rotate_webhook_secret(
    request: RequestContext, partner_id: int, grace_seconds: int
) -> str:
    """Replace the webhook secret and return the new secret.

    The old secret stays valid until the grace period ends.
    """
    services = request.services
    new = services.authenticator.webhook_secrets.create(partner_id)
    previous_until = services.clock() + timedelta(seconds=grace_seconds) if grace_seconds else None
    async with services.transaction() as tx:
        if not await queries.rotate_webhook_secret(tx, partner_id, new.sealed, previous_until):
            raise model.not_found()
        await _trail.record(
            tx,
            request.actor,
            ids.encode(ids.PARTNER, partner_id),
            "webhook_secret_rotated",
            changes={"grace_seconds": (None, grace_seconds)},
        )
    return new.secret


async def _change_status(
    request: RequestContext,
    partner_id: int,
    transition: Transition[PartnerStatus],
    reason: str | None,
) -> Partner:
    services = request.services
    async with services.transaction() as tx:
        before = await queries.lock(tx, partner_id)
        after = model.apply_transition(before, transition)
        await queries.save_state(tx, after, reason, services.clock())
        record = model.to_record(after)
        await _trail.record(
            tx,
            request.actor,
            record.id,
            transition.event,
            reason=reason,
            changes=diff_records(model.to_record(before), record),
        )
        ticket = await services.authenticator.hmac_keys.publish_owner_change(tx)
    await services.signals.wait_for_acks(ticket)
    return after
