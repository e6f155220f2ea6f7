"""Decides whether a request is a replay, which gets the original outcome, or a conflict.

In a conflict, the idempotency key or partner reference was used for a different request.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tapgate.ledger.archive.archived import ARCHIVED
from tapgate.ledger.commands import (
    Outcome,
    PartnerReference,
    ScopedIdempotencyKey,
    TransactionResult,
    build_outcome,
)
from tapgate_client.errors import Code


class PriorRequest(NamedTuple):
    """An idempotency key or partner reference that was used before."""

    fingerprint: bytes | None
    to_account: int | None
    amount: int
    #: None if the transaction is archived.
    result: TransactionResult | None


def find_replayed_request(
    prior_requests: Mapping[tuple[str, str], PriorRequest], request: ScopedIdempotencyKey
) -> Outcome | None:
    """Return the original outcome or a conflict, or None if the idempotency key is new.

    The lookup may find several requests: before idempotency keys were scoped to the API key's
    owner, an owner's API keys could each use the same idempotency key. The request is a replay if
    one of the fingerprints matches, and otherwise a conflict.
    """
    scopes = request.lookup_scopes or (request.scope,)
    found = [prior_requests.get((scope, request.request_id)) for scope in scopes]
    for prior in found:
        if prior is None:
            continue
        if prior.result is None:
            return Outcome(None, Code.DUPLICATE_REQUEST, dict(ARCHIVED))
        if prior.fingerprint == request.fingerprint:
            return build_outcome(prior.result, replayed=True)
    return Outcome(None, Code.DUPLICATE_REQUEST) if any(found) else None


def find_replayed_reference(
    prior_references: Mapping[tuple[int, str], PriorRequest],
    reference: PartnerReference,
    payee_id: int | None,
    amount: int,
) -> Outcome | None:
    """Return the original outcome or a conflict, or None if the partner reference is new."""
    prior = prior_references.get((reference.partner_id, reference.reference))
    if prior is None:
        return None
    if prior.result is None:
        return Outcome(None, Code.DUPLICATE_REFERENCE, dict(ARCHIVED))
    if payee_id is None or prior.to_account != payee_id or prior.amount != amount:
        return Outcome(None, Code.DUPLICATE_REFERENCE)
    return build_outcome(prior.result, replayed=True)
