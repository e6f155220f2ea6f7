"""The audit log over HTTP: reading it, and proving that it is what was written."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from weakref import WeakKeyDictionary
from zoneinfo import ZoneInfo

import msgspec

from tapgate.audit import entry
from tapgate.audit.chain import Verification
from tapgate.audit.entry import AuditEntry, AuditResult
from tapgate.audit.verification import Verifier
from tapgate.credentials.disclosure import Subject, find_hidden_subjects
from tapgate.edge.endpoint import Access, Endpoints
from tapgate.edge.pagination import Page, PageQuery, paginate
from tapgate.edge.periods import PeriodBound, parse_period_end, parse_period_start
from tapgate.edge.request_context import RequestContext
from tapgate.edge.services import Services
from tapgate.store.conditions import Conditions
from tapgate.store.database import Database

endpoints = Endpoints("Audit")

_ACCESS = Access(roles="AC")

#: How far the order of the chain and the order in time may be apart: of clocks set right, seconds.
_MAX_CLOCK_SKEW = timedelta(hours=1)
_SEQUENCE_AFTER_SQL = """sequence > coalesce((
                           SELECT sequence FROM audit_entries WHERE occurred_at < {}
                                 ORDER BY occurred_at DESC LIMIT 1), 0)"""
_SEQUENCE_BEFORE_SQL = """sequence < coalesce((
                            SELECT sequence FROM audit_entries WHERE occurred_at >= {}
                                  ORDER BY occurred_at LIMIT 1), 9223372036854775807)"""


class AuditLogQuery(PageQuery, kw_only=True):
    actor_id: str | None = None
    event: str | None = None
    resource_type: str | None = None
    resource_id: str | None = None
    result: AuditResult | None = None
    from_: PeriodBound | None = msgspec.field(default=None, name="from")
    to: PeriodBound | None = None


class VerifyQuery(msgspec.Struct, kw_only=True):
    full: bool = False


@endpoints.get("/api/v1/audit/logs", access=_ACCESS, heavy=True)
async def list_audit_entries(call: RequestContext, query: AuditLogQuery) -> Page[AuditEntry]:
    """List audit entries.

    Newest first, in the order of the chain. `from` and `to` are inclusive; a day is one of the
    platform's time zone. `changes` has the old and the new value of each field, secrets masked.
    Entries about a restricted subscriber, their cards, transactions and alerts have values and
    reason masked too, until this admin has verified a code.
    `hash` and `previous_hash` are null until the entry is sealed into the chain, which takes at
    most a few seconds.
    """
    sql, values = build_page_query(query, call.services.settings.timezone)
    rows = await call.services.database.fetch(sql, *values)
    hidden = await find_hidden_subjects(
        call.services.database,
        call.caller,
        call.services.clock(),
        {_get_subject(row) for row in rows},
    )
    return paginate(
        rows,
        query.limit,
        lambda row: row["sequence"],
        lambda row: entry.to_record(row, masked=_get_subject(row) in hidden),
    )


@endpoints.get("/api/v1/audit/verify", access=_ACCESS)
async def verify_audit_chain(call: RequestContext, query: VerifyQuery) -> Verification:
    """Verify the audit log.

    Recomputes the chain of hashes over what was sealed since an earlier verification, and over
    the newest 10,000 entries in any case; with `full=true`, over all of the log. `entries` counts
    all of it in both cases. `unsealed` entries
    are not in the chain yet. `first_broken` names the first entry that was changed, moved or put
    in, or that follows on one that was removed; when the sealed end itself is gone, it is that
    end's sequence number.

    One verification runs at a time; requests that arrive while one runs get its result. 503 with
    `Retry-After` while a longer one runs in another process or too many requests wait.
    """
    return await _get_verifier(call.services).verify(full=query.full)


_verifiers: WeakKeyDictionary[Database, Verifier] = WeakKeyDictionary()


def _get_verifier(services: Services) -> Verifier:
    """The one of this process."""
    found = _verifiers.get(services.database)
    if found is None:
        found = Verifier(services.database, services.vault, services.clock)
        _verifiers[services.database] = found
    return found


def _get_subject(row: Mapping[str, Any]) -> Subject:
    return Subject(row["resource_type"], row["resource_id"])


def build_page_query(query: AuditLogQuery, zone: ZoneInfo) -> tuple[str, list[object]]:
    """The SQL of the newest entries that match, one more than the limit, and its values."""
    conditions = Conditions()
    conditions.where("sequence < {}", query.before_id)
    conditions.where("actor_id = {}", query.actor_id)
    conditions.where("event = {}", query.event)
    conditions.where("resource_type = {}", query.resource_type)
    conditions.where("resource_id = {}", query.resource_id)
    conditions.where("result = {}", query.result)
    start, end = parse_period_start(query.from_, zone), parse_period_end(query.to, zone)
    conditions.where("occurred_at >= {}", start)
    conditions.where("occurred_at < {}", end)
    # The same again, roughly, in the order of the list: without, all that came later is read.
    conditions.where(_SEQUENCE_AFTER_SQL, start and start - _MAX_CLOCK_SKEW)
    conditions.where(_SEQUENCE_BEFORE_SQL, end and end + _MAX_CLOCK_SKEW)
    sql = f"""SELECT {entry.COLUMNS} FROM audit_entries WHERE {conditions}
              ORDER BY sequence DESC LIMIT {conditions.bind(query.limit + 1)}"""
    return sql, conditions.values
