"""Account statements."""

from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from harness import BearerAuth, Harness
from tapgate.business.payments.wallets.statements.model import Movement, Period, Statement
from tapgate.ledger import chart
from tapgate_client import ids


def build_statement(count: int, **fields: Any) -> Statement:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    movements = [
        Movement(
            start + timedelta(minutes=50 * index),
            (1 << 58) + index,
            chart.TRANSFER_P2P,
            index % 3 == 2,
            150 if index % 3 == 0 else -7,
            "Mohamed S.",
            "School fees",
        )
        for index in range(count)
    ]
    values: dict[str, Any] = {
        "id": 1 << 58,
        "holder_id": ids.encode(ids.SUBSCRIBER, 1 << 57),
        "account_id": 1 << 56,
        "holder_name": "Aminata Kamara",
        "phone_number": "+23276123456",
        "currency": "SLE",
        "zone": ZoneInfo("Africa/Freetown"),
        "period": Period(date(2026, 1, 1), date(2026, 12, 31)),
        "opening_balance": 123_456,
        "movements": movements,
        "generated_at": start,
    }
    return Statement(**{**values, **fields})


URL = "/api/v1/wallet/account-statement"


def get_today(harness: Harness) -> str:
    zone = harness.services.settings.timezone
    return datetime.now(UTC).astimezone(zone).date().isoformat()


def build_request(harness: Harness, subscriber: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "subscriber_id": subscriber["id"],
        "from_date": get_today(harness),
        "to_date": get_today(harness),
        **fields,
    }


async def get_statement(
    harness: Harness, key: BearerAuth, subscriber: dict[str, Any], **fields: Any
) -> dict[str, Any]:
    response = await harness.post(URL, json=build_request(harness, subscriber, **fields), auth=key)
    assert response.status_code == 200, response.text
    body: dict[str, Any] = response.json()
    return body
