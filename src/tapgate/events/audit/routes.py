"""Audit log endpoints: list entries and verify the hash chain."""

from collections.abc import Mapping
from datetime import timedelta
from operator import itemgetter
from typing import Any
from weakref import WeakKeyDictionary
from zoneinfo import ZoneInfo

from tapgate.auth.disclosure import Subject, find_hidden_subjects
from tapgate.core.pagination import paginate
from tapgate.events.audit import entry
from tapgate.events.audit.names import build_subject, list_references, load_names
from tapgate.events.audit.verification import Verifier
from tapgate.http.api.access import Access
from tapgate.http.api.object_access import ObjectAccess
from tapgate.http.api.owner_access import NEVER
from tapgate.http.api.request_context import RequestContext
from tapgate.http.api.services import Services
from tapgate.http.endpoint import Endpoints
from tapgate.runtime.store.conditions import Conditions
from tapgate.runtime.store.database import Database
from tapgate_client.schemas.audit import AuditLogQuery, AuditPage, Verification, VerifyQuery
from tapgate_client.schemas.periods import parse_period_end, parse_period_start

endpoints = Endpoints("Audit", objects=ObjectAccess.ANY, owners=NEVER)

_ACCESS = Access(roles="AC")

#: Assumed maximum by which timestamps are out of chain order. Synchronized clocks differ far less.
_MAX_CLOCK_SKEW = timedelta(hours=1)
_SEQUENCE_AFTER_SQL = """sequence > coalesce((
                           SELECT sequence FROM audit_entries WHERE occurred_at < {}
                                 ORDER BY occurred_at DESC LIMIT 1), 0)"""
_SEQUENCE_BEFORE_SQL = """sequence < coalesce((
                            SELECT sequence FROM audit_entries WHERE occurred_at >= {}
                                  ORDER BY occurred_at LIMIT 1), 9223372036854775807)"""


@endpoints.get("/api/v1/audit/logs", access=_ACCESS, heavy=True)
async def list_audit_entries(request: RequestContext, query: AuditLogQuery) -> AuditPage:
    """List audit entries.

    Entries are in chain order, newest first. `from` and `to` are inclusive, and dates are in the
    platform's time zone. `changes` contains the old and new value of each field, with secrets
    masked.

    In entries about a restricted subscriber, or about the subscriber's cards, transactions and
    alerts, the values in `changes` and the reason are masked, unless this admin has verified a
    one-time code. `names` then omits the subscriber.

    `hash` and `previous_hash` are null until the entry is sealed into the chain, normally within a
    few seconds.
    """
    sql, values = build_page_query(query, request.services.settings.timezone)
    database = request.services.database
    rows = await database.fetch(sql, *values)
    references = list_references([(row["resource_id"], row["changes"]) for row in rows])
    subjects = {_get_subject(row) for row in rows} | {
        subject for public_id in references if (subject := build_subject(public_id))
    }
    hidden = await find_hidden_subjects(
        database, request.caller, request.services.clock(), subjects
    )
    page = paginate(
        rows,
        query,
        lambda row: entry.to_record(row, masked=_get_subject(row) in hidden),
        itemgetter("sequence"),
    )
    # The records, unlike the rows, contain no IDs from masked changes.
    named = list_references([(record.resource_id, record.changes) for record in page.data])
    names = await load_names(
        database, [public_id for public_id in named if build_subject(public_id) not in hidden]
    )
    return AuditPage(
        data=page.data, has_more=page.has_more, next_cursor=page.next_cursor, names=names
    )


@endpoints.get("/api/v1/audit/verify", access=_ACCESS, report=True)
async def verify_audit_chain(request: RequestContext, query: VerifyQuery) -> Verification:
    """Verify the audit log.

    Recomputes the hash chain from an earlier verification's checkpoint, and always over at least
    the newest 10,000 sealed entries. With `full=true`, recomputes the entire chain. `entries`
    is the number of entries in the entire log in both cases.

    `unsealed` is the number of entries that are not yet in the chain. `first_broken` is the ID of
    the first entry that was changed, moved or inserted, or that follows a removed entry. If the
    last sealed entry is missing, `first_broken` is its sequence number.

    Only one verification runs at a time. Requests that arrive while it runs in the same process
    share its result, unless they ask for a full verification and it is partial. The request fails
    with 503 and `Retry-After` if another process does not finish its verification within 3 seconds,
    or if too many requests are waiting.
    """
    return await _get_verifier(request.services).verify(full=query.full)


_verifiers: WeakKeyDictionary[Database, Verifier] = WeakKeyDictionary()


def _get_verifier(services: Services) -> Verifier:
    """Return the verifier that all requests in this process share for the database."""
    verifier = _verifiers.get(services.database)
    if verifier is None:
        verifier = Verifier(services.database, services.vault, services.clock)
        _verifiers[services.database] = verifier
    return verifier


def _get_subject(row: Mapping[str, Any]) -> Subject:
    return Subject(row["resource_type"], row["resource_id"])


def build_page_query(query: AuditLogQuery, zone: ZoneInfo) -> tuple[str, list[object]]:
    """Return the SQL and values for the newest matching entries, up to the limit plus one."""
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
    # Repeat the period filter approximately on `sequence`, the sort key. Otherwise PostgreSQL would
    # also read all entries after the period.
    conditions.where(_SEQUENCE_AFTER_SQL, start and start - _MAX_CLOCK_SKEW)
    conditions.where(_SEQUENCE_BEFORE_SQL, end and end + _MAX_CLOCK_SKEW)
    sql = f"""SELECT {entry.COLUMNS} FROM audit_entries WHERE {conditions}
              ORDER BY sequence DESC LIMIT {conditions.bind(query.limit + 1)}"""
    return sql, conditions.values
