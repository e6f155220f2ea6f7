"""Subscriber timeline, merged from several sources by the time in their IDs.

Each source returns the items before a position, newest first, and reads only a page of an index.
The position is an ID. Items without an ID of their own have the smallest ID of their time.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from tapgate.auth.principals import Principal
from tapgate.business.compliance.alerts import queries as alerts
from tapgate.business.compliance.alerts import routes as alert_routes
from tapgate.business.customers.subscribers import chat_turns
from tapgate.business.customers.subscribers import queries as subscribers
from tapgate.business.customers.subscribers.model import Subscriber
from tapgate.business.payments.transactions.reader import TransactionReader
from tapgate.business.support import routes as support_routes
from tapgate.core.id_generator import first_id_at, get_time
from tapgate.core.pagination import encode_cursor
from tapgate.events.audit import routes as audit
from tapgate.events.notifications import message_statuses
from tapgate.http.api.access import Access, map_access
from tapgate.http.api.services import Services
from tapgate.runtime.store.database import Database
from tapgate_client import ids
from tapgate_client.clock import format_rfc3339
from tapgate_client.schemas.audit import AuditResult
from tapgate_client.schemas.compliance import AlertFilters
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.timeline import TimelineFilters, TimelineItem, TimelineKind
from tapgate_client.schemas.transactions import TransactionFilters, TransactionRecord

#: Cards whose audit entries are part of the timeline.
_MAX_CARDS: Final = 10
#: Concurrent audit entries may have IDs in another order than the log.
_REORDERED_ENTRIES: Final = 50
_MAX_CLOCK_SKEW: Final = timedelta(hours=1)

_AUDIT_SQL: Final = """
    SELECT * FROM unnest($1::text[]) AS resource (id) CROSS JOIN LATERAL (
        SELECT id AS entry_id, occurred_at, event, actor, result, reason FROM audit_entries
        WHERE resource_id = resource.id AND audit_entries.id < $2
          AND sequence < coalesce((
              SELECT sequence FROM audit_entries WHERE occurred_at >= $3
              ORDER BY occurred_at LIMIT 1), 9223372036854775807)
        ORDER BY sequence DESC LIMIT $4) AS entry
    ORDER BY entry_id DESC LIMIT $4"""
_WRONG_PINS_SQL: Final = """
    SELECT date_trunc('milliseconds', failed_at) AS at, count(*) AS count FROM pin_failures
    WHERE account_id = $1 AND failed_at < $2 GROUP BY 1 ORDER BY 1 DESC LIMIT $3"""
_SUPPORT_SQL: Final = """
    SELECT m.created_at, m.number, m.sender, r.id, r.status
    FROM support_requests r JOIN support_messages m ON m.request_id = r.id
    WHERE r.subscriber_id = $1 AND m.created_at < $2
    ORDER BY m.created_at DESC, m.number DESC LIMIT $3"""


class PositionedItem(NamedTuple):
    position: int
    item: TimelineItem


class TimelineReader(NamedTuple):
    services: Services
    caller: Principal
    subscriber: Subscriber
    #: Items are older than this ID.
    before: int
    limit: int

    @property
    def _database(self) -> Database:
        return self.services.database

    @property
    def _page(self) -> dict[str, Any]:
        return {"limit": self.limit, "cursor": encode_cursor(self.before)}

    @property
    def _end(self) -> datetime:
        """Exclusive end of the times of items without an ID."""
        return get_time(self.before) + timedelta(milliseconds=1)

    async def read_transactions(self) -> list[PositionedItem]:
        services = self.services
        reader = TransactionReader(
            self._database, self.caller, services.clock(), services.settings.timezone
        )
        page = await reader.list_page(
            TransactionFilters(user_id=self.subscriber.public_id, **self._page)
        )
        return [_build_transaction_item(record) for record in page.data]

    async def read_messages(self) -> list[PositionedItem]:
        rows = await message_statuses.list_page(
            self._database,
            self.subscriber.phone_number,
            PageQuery(**self._page),
            since=await subscribers.get_phone_number_owned_since(
                self._database, self.subscriber.id
            ),
            template=None,
        )
        return [
            PositionedItem(
                row["id"],
                TimelineItem(
                    at=format_rfc3339(row["created_at"]),
                    kind=TimelineKind.MESSAGE,
                    event=row["template"],
                    resource_id=ids.encode(ids.MESSAGE, row["id"]),
                    status=row["status"],
                    failure_code=row["error_code"],
                    message_channel=row["channel"],
                ),
            )
            for row in rows
        ]

    async def read_audit_entries(self) -> list[PositionedItem]:
        """Return changes to the subscriber and its cards, without their values.

        Only roles that may read the audit log see the reasons.
        """
        cards = await self._database.fetch(
            "SELECT serial FROM cards WHERE subscriber_id = $1 ORDER BY id DESC LIMIT $2",
            self.subscriber.id,
            _MAX_CARDS,
        )
        rows = await self._database.fetch(
            _AUDIT_SQL,
            [self.subscriber.public_id, *(row["serial"] for row in cards)],
            self.before,
            self._end + _MAX_CLOCK_SKEW,
            self.limit + _REORDERED_ENTRIES,
        )
        has_reasons = _ACCESS["GET /api/v1/audit/logs"].get_rejection(self.caller) is None
        return [
            _build_audit_item(row, has_reason=has_reasons) for row in rows if not _is_wrong_pin(row)
        ]

    async def read_wrong_pins(self) -> list[PositionedItem]:
        rows = await self._database.fetch(
            _WRONG_PINS_SQL, self.subscriber.account_id, self._end, self.limit
        )
        return [
            PositionedItem(
                first_id_at(row["at"]),
                TimelineItem(
                    at=format_rfc3339(row["at"]),
                    kind=TimelineKind.PIN,
                    event="wrong_pin",
                    status=AuditResult.FAILURE,
                    count=row["count"],
                ),
            )
            for row in rows
        ]

    async def read_alerts(self) -> list[PositionedItem]:
        filters = AlertFilters(subscriber_id=self.subscriber.public_id, **self._page)
        return [
            PositionedItem(
                alert.id,
                TimelineItem(
                    at=format_rfc3339(alert.created_at),
                    kind=TimelineKind.ALERT,
                    event=alert.alert_type,
                    resource_id=alert.public_id,
                    status=alert.status,
                    count=alert.occurrences,
                ),
            )
            for alert in await alerts.list_page(self._database, filters)
        ]

    async def read_chat_turns(self) -> list[PositionedItem]:
        rows = await chat_turns.list_turns(
            self._database, self.subscriber.id, before=self.before, limit=self.limit
        )
        return [
            PositionedItem(
                row["id"],
                TimelineItem(
                    at=format_rfc3339(get_time(row["id"])),
                    kind=TimelineKind.CHAT,
                    event=row["command"] or "message",
                    resource_id=ids.encode(ids.CHAT_TURN, row["id"]),
                    status=row["outcome"],
                    failure_code=row["error_code"],
                    channel=row["channel"],
                    input=row["input"],
                    replies=row["replies"],
                ),
            )
            for row in rows
        ]

    async def read_support_messages(self) -> list[PositionedItem]:
        rows = await self._database.fetch(_SUPPORT_SQL, self.subscriber.id, self._end, self.limit)
        return [
            PositionedItem(
                first_id_at(row["created_at"]) + row["number"],
                TimelineItem(
                    at=format_rfc3339(row["created_at"]),
                    kind=TimelineKind.SUPPORT,
                    event=row["sender"],
                    resource_id=ids.encode(ids.SUPPORT_REQUEST, row["id"]),
                    status=row["status"],
                ),
            )
            for row in rows
        ]


Source = Callable[[TimelineReader], Awaitable[list[PositionedItem]]]

_ACCESS: Final = map_access(alert_routes.endpoints, support_routes.endpoints, audit.endpoints)
#: Finance users do not need to know what customers ask in the chat.
_CHAT_ACCESS: Final = Access(roles="ACS")
#: Sources of each kind, and the required access if not every timeline caller may see them.
_SOURCES: Final[Sequence[tuple[frozenset[str], Source, Access | None]]] = (
    (frozenset({TimelineKind.TRANSACTION}), TimelineReader.read_transactions, None),
    (frozenset({TimelineKind.MESSAGE}), TimelineReader.read_messages, None),
    (frozenset({TimelineKind.PIN}), TimelineReader.read_wrong_pins, None),
    (
        frozenset({TimelineKind.PIN, TimelineKind.KYC, TimelineKind.ACTION}),
        TimelineReader.read_audit_entries,
        None,
    ),
    (
        frozenset({TimelineKind.ALERT}),
        TimelineReader.read_alerts,
        _ACCESS["GET /api/v1/compliance/alerts"],
    ),
    (
        frozenset({TimelineKind.SUPPORT}),
        TimelineReader.read_support_messages,
        _ACCESS["GET /api/v1/support/requests"],
    ),
    (frozenset({TimelineKind.CHAT}), TimelineReader.read_chat_turns, _CHAT_ACCESS),
)


async def load_timeline(
    services: Services, caller: Principal, subscriber: Subscriber, query: TimelineFilters
) -> list[PositionedItem]:
    """Return a page of items, newest first, plus one item if there are more."""
    reader = TimelineReader(services, caller, subscriber, query.before_id, query.limit + 1)
    found = [
        item
        for kinds, read, access in _SOURCES
        if (query.kind is None or query.kind in kinds)
        and (access is None or access.get_rejection(caller) is None)
        for item in await read(reader)
        if item.position < query.before_id and (query.kind is None or item.item.kind == query.kind)
    ]
    found.sort(key=lambda item: item.position, reverse=True)
    return found[: query.limit + 1]


def _build_transaction_item(record: TransactionRecord) -> PositionedItem:
    position = ids.decode(ids.TRANSACTION, record.id)
    assert position is not None
    other = record.to if record.direction == "debit" else record.from_
    return PositionedItem(
        position,
        TimelineItem(
            at=record.created_at,
            kind=TimelineKind.TRANSACTION,
            event=record.type,
            resource_id=record.id,
            status=record.status,
            amount=record.amount,
            currency=record.currency,
            direction=record.direction,
            counterparty=None if other is None else (other.name or None),
            failure_code=record.failure_code,
        ),
    )


def _build_audit_item(row: Mapping[str, Any], *, has_reason: bool) -> PositionedItem:
    action = row["event"].partition(".")[2]
    kind = (
        TimelineKind.PIN
        if action.startswith("pin_")
        else TimelineKind.KYC
        if action.startswith("kyc_")
        else TimelineKind.ACTION
    )
    return PositionedItem(
        row["entry_id"],
        TimelineItem(
            at=format_rfc3339(row["occurred_at"]),
            kind=kind,
            event=row["event"],
            resource_id=ids.encode(ids.AUDIT_ENTRY, row["entry_id"]),
            status=row["result"],
            actor_type=row["actor"]["type"],
            actor_name=row["actor"].get("name"),
            reason=row["reason"] if has_reason else None,
        ),
    )


def _is_wrong_pin(row: Mapping[str, Any]) -> bool:
    """Return whether the table of wrong PINs has this attempt too."""
    return bool(row["result"] == AuditResult.FAILURE and row["reason"] == "INVALID_PIN")
