"""Endpoints for closed days, public keys and inclusion proofs."""

from datetime import date as Date  # noqa: N812 - `date` is the path parameter

from tapgate.auth import owners
from tapgate.business.customers.subscribers.restriction import require_transaction_access
from tapgate.business.finance.day_close import queries
from tapgate.business.finance.day_close.ledger_keys import list_public_keys
from tapgate.business.finance.day_close.model import parse_day, to_record
from tapgate.business.finance.day_close.proofs import build_proof, load_posted
from tapgate.business.finance.day_close.worker import build_closer
from tapgate.core.pagination import paginate
from tapgate.core.records import TransactionId
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Unguarded
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER, Binding, OwnerAccess
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate_client.errors import Code, require_found
from tapgate_client.schemas.day_close import (
    ClosedDay,
    ClosedDayQuery,
    InclusionProof,
    LedgerKeys,
)
from tapgate_client.schemas.pagination import Page

endpoints = Endpoints(
    "Day close", access=Access(roles="AF"), objects=ObjectAccess.ANY, owners=NEVER
)


@endpoints.post(
    "/api/v1/ledger/days/{date}/close",
    report=True,
    effect="sets",
    unguarded=Unguarded.NO_EFFECT,
)
async def close_ledger_day(request: RequestContext, date: str) -> ClosedDay:
    """Close a day.

    The day is a date of the platform's calendar that is over. Every earlier open day that has
    entries is closed first. A day without entries closes with zero transactions and the previous
    root. The same day again returns the same record.

    The record has a hash tree root over all transactions that were posted on the day, and an
    Ed25519 signature. A closed day never changes. An entry is always posted on the current day,
    even if its transaction was requested earlier and held for a review.
    """
    return to_record(await build_closer(request.services).close(parse_day(date), request.actor))


@endpoints.get("/api/v1/ledger/days")
async def list_ledger_days(request: RequestContext, query: ClosedDayQuery) -> Page[ClosedDay]:
    """List closed days, newest first."""
    rows = await queries.list_days(request.services.database, query)
    return paginate(rows, query, to_record, lambda row: row.day.toordinal())


@endpoints.get("/api/v1/ledger/days/{date}", errors=(Code.DAY_NOT_FOUND,))
async def get_ledger_day(request: RequestContext, date: str) -> ClosedDay:
    """Get a closed day.

    While the day is open, the response is 404 `DAY_NOT_FOUND`.
    """
    day: Date = parse_day(date)
    row = await queries.find_day(request.services.database, day)
    return to_record(require_found(row, Code.DAY_NOT_FOUND))


@endpoints.get(
    "/api/v1/transactions/{id}/proof",
    access=Access(scope="payments:read", roles="ACSF", service=True),
    errors=(Code.OTP_REQUIRED, Code.DAY_NOT_CLOSED),
    objects=ObjectAccess.UNRESTRICTED,
    owners=OwnerAccess(binding=Binding.ROW, roles="MKPG", rows=owners.TRANSACTIONS),
)
async def get_transaction_proof(request: RequestContext, id: TransactionId) -> InclusionProof:
    """Get the inclusion proof for a transaction.

    The proof shows that the transaction is part of a closed day: `leaf` is the hashed object,
    `path` leads from its hash to the day's `merkle_root`, and a key of
    `GET /.well-known/tapgate-keys` has signed the day. `tapgate verify-receipt` checks a stored
    proof without network or database. Before the day is closed, and for a transaction that moved
    no money, the response is 409 `DAY_NOT_CLOSED`. Owners get the day without `totals`.
    """
    services, caller = request.services, request.principal
    transaction = await load_posted(services.database, id)
    # A leaf has no more than the IDs and amounts that masked entries have.
    await require_transaction_access(
        services.database, caller, services.clock(), transaction.account_ids
    )
    return await build_proof(services.database, transaction, with_totals=caller.owner is None)


@endpoints.get("/.well-known/tapgate-keys", access=Access(public=True))
async def list_ledger_keys(request: RequestContext) -> LedgerKeys:
    """List the public keys that sign closed days.

    Retired keys stay in the list, because they verify the days that they signed.
    """
    return LedgerKeys(keys=await list_public_keys(request.services.database))
