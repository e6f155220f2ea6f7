"""Records in the events that webhooks send, by resource type."""

from collections.abc import Mapping
from typing import Final

import msgspec

from tapgate.business.agents.queries import load_records as load_agent_records
from tapgate.business.compliance.alerts.queries import load_records as load_alert_records
from tapgate.business.customers.cards.queries import load_records as load_card_records
from tapgate.business.payments.transactions.queries import load_records as load_transaction_records
from tapgate.events.webhooks.event_data import RecordLoader
from tapgate.http.api.openapi_webhooks import WebhookEvent
from tapgate_client.schemas.agents import AgentRecord
from tapgate_client.schemas.approvals import ApprovalRecord
from tapgate_client.schemas.bank_statements import BankStatementRecord
from tapgate_client.schemas.batches import BatchRecord
from tapgate_client.schemas.cards import CardRecord
from tapgate_client.schemas.compliance import AlertRecord
from tapgate_client.schemas.day_close import ClosedDay
from tapgate_client.schemas.disputes import DisputeRecord
from tapgate_client.schemas.payouts import PayoutRecord
from tapgate_client.schemas.processors import ProcessorRecord
from tapgate_client.schemas.subscribers import SubscriberRecord
from tapgate_client.schemas.support import SupportRequestEvent
from tapgate_client.schemas.transactions import TransactionRecord
from tapgate_client.schemas.webhooks import (
    TEST_EVENT,
    WEBHOOK_EVENT_CATALOG,
    DisabledEndpoint,
    EventType,
    TestEventData,
)

#: Loaders for the records in ledger events, by resource type.
EVENT_RECORD_LOADERS: Final[Mapping[str, RecordLoader]] = {
    "transaction": load_transaction_records,
    "alert": load_alert_records,
    "agent": load_agent_records,
    "card": load_card_records,
}

#: Record type in the `data` of an event, by resource type.
EVENT_RECORD_TYPES: Final[Mapping[str, type[msgspec.Struct]]] = {
    "transaction": TransactionRecord,
    "card": CardRecord,
    "subscriber": SubscriberRecord,
    "alert": AlertRecord,
    "support": SupportRequestEvent,
    "agent": AgentRecord,
    "dispute": DisputeRecord,
    "approval": ApprovalRecord,
    "payout": PayoutRecord,
    "batch": BatchRecord,
    "day": ClosedDay,
    "reconciliation": BankStatementRecord,
    "processor": ProcessorRecord,
    "webhook_endpoint": DisabledEndpoint,
    "webhook": TestEventData,
}

#: Events described in the OpenAPI document.
WEBHOOK_EVENTS: Final = tuple(
    WebhookEvent(
        name=event.name,
        description=event.description,
        record_type=EVENT_RECORD_TYPES[event.resource_type],
    )
    for event in (*WEBHOOK_EVENT_CATALOG, EventType(TEST_EVENT, "A test event, sent on request."))
)
