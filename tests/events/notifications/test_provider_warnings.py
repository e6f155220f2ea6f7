"""Messaging provider warnings: from its webhook to the console, the metrics and the logs."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from drivers.console import ConsoleClients
from drivers.gateway_requests import UnreachableTransport, open_gateway
from drivers.in_process import AppTransport
from drivers.messenger import ServicesDriver
from harness import Harness, parse_error
from tapgate.messenger import gateway_requests
from tapgate.messenger.channel.delivery_parser import parse_delivery
from tapgate.server.gateway import create_app

URL = "/api/v1/messages/provider-warnings"
WEBHOOK_PATH = "/api/v1/webhooks/messaging"
TEMPLATE = {"message_template_name": "one_time_code", "message_template_language": "fr"}
FIELDS = ("message_template_status_update", "account_update", "phone_number_quality_update")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)


def build_delivery(field: str, value: Any, time: Any = 1_790_000_000) -> bytes:
    change = {"field": field, "value": value}
    return json.dumps({"entry": [{"id": "1", "time": time, "changes": [change]}]}).encode()


async def list_warnings(harness: Harness) -> list[tuple[str, str, str, str | None]]:
    response = await harness.get(URL, auth=await harness.create_admin("S"))
    return [
        (item["kind"], item["subject"], item["state"], item["reason"])
        for item in response.json()["data"]
    ]


@each(
    "field, value, expected",
    [
        (
            FIELDS[0],
            {**TEMPLATE, "event": "REJECTED", "reason": "INVALID_FORMAT"},
            ("template", "one_time_code (fr)", "REJECTED", "INVALID_FORMAT", False),
        ),
        (
            FIELDS[0],
            {**TEMPLATE, "event": "APPROVED", "reason": "NONE"},
            ("template", "one_time_code (fr)", "APPROVED", "NONE", True),
        ),
        (
            FIELDS[1],
            {
                "event": "ACCOUNT_RESTRICTION",
                "restriction_info": [{"restriction_type": "RESTRICTED_MESSAGING"}],
            },
            ("account", "account", "ACCOUNT_RESTRICTION", "RESTRICTED_MESSAGING", False),
        ),
        (
            FIELDS[1],
            {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": "DISABLE"}},
            ("account", "account", "DISABLE", None, False),
        ),
        (
            FIELDS[1],
            {"event": "DISABLED_UPDATE", "ban_info": {"waba_ban_state": ["REINSTATE"]}},
            ("account", "account", "REINSTATE", None, True),
        ),
        (
            FIELDS[2],
            {"display_phone_number": "23225000000", "event": "FLAGGED", "current_limit": "TIER_1K"},
            ("phone_number", "23225000000", "FLAGGED", "TIER_1K", False),
        ),
        (
            FIELDS[2],
            {"display_phone_number": "23225000000", "quality_rating": "GREEN"},
            ("phone_number", "23225000000", "GREEN", None, True),
        ),
    ],
)
def test_provider_reports_are_parsed(field: str, value: Any, expected: Any) -> None:
    (report,) = parse_delivery(build_delivery(field, value)).provider_reports
    found = (report.kind, report.subject, report.state, report.reason, report.resolved)
    assert found == expected


@given(st.sampled_from(FIELDS), JSON, JSON)
def test_malformed_reports_are_ignored_or_storable(field: str, value: Any, time: Any) -> None:
    for report in parse_delivery(build_delivery(field, value, time)).provider_reports:
        assert report.subject and report.state and report.subject.isprintable()


async def test_warning_is_shown_counted_and_ends(harness: Harness, database_url: str) -> None:
    async with ServicesDriver(harness, database_url).run_messenger() as messenger:

        async def deliver(event: str, time: int) -> None:
            body = build_delivery(FIELDS[0], {**TEMPLATE, "event": event, "reason": "SPAM"}, time)
            response = await messenger.client.post(WEBHOOK_PATH, content=body)
            assert response.status_code == 200, response.text

        await deliver("PAUSED", 1_790_000_100)
        await deliver("PAUSED", 1_790_000_100)
        await deliver("APPROVED", 1_790_000_000)  # arrives late
        warnings = await list_warnings(harness)
        assert warnings == [("template", "one_time_code (fr)", "PAUSED", "SPAM")]
        metrics = (await harness.get("/metrics")).text
        assert 'tapgate_provider_warnings{kind="template"} 1.0' in metrics
        assert 'tapgate_provider_warnings{kind="account"} 0.0' in metrics
        await deliver("APPROVED", 1_790_000_200)
        assert await list_warnings(harness) == []


async def test_delivery_is_repeated_while_the_gateway_is_unreachable(
    harness: Harness, database_url: str
) -> None:
    async with ServicesDriver(harness, database_url).run_messenger() as messenger:
        body = build_delivery(FIELDS[1], {"event": "ACCOUNT_VIOLATION"})
        perform = messenger.services.perform_request
        unreachable = open_gateway(UnreachableTransport(), "x" * 32)
        messenger.services.perform_request = lambda request: gateway_requests.perform(
            unreachable, request
        )
        assert (await messenger.client.post(WEBHOOK_PATH, content=body)).status_code == 503
        messenger.services.perform_request = perform
        assert (await messenger.client.post(WEBHOOK_PATH, content=body)).status_code == 200
    assert len(await list_warnings(harness)) == 1


async def test_only_services_report_warnings(harness: Harness) -> None:
    report = {
        "kind": "account",
        "subject": "account",
        "state": "DISABLE",
        "resolved": False,
        "occurred_at": "2026-01-31T12:00:00Z",
    }
    response = await harness.post(
        URL, json={"data": [report]}, auth=await harness.create_admin("A")
    )
    assert parse_error(response) == (403, "FORBIDDEN")
    response = await harness.post(URL, json={"data": [report]}, auth=harness.get_service_auth())
    assert response.json() == {"updated": 1}


async def test_console_lists_warnings(harness: Harness) -> None:
    client = await ConsoleClients(
        harness, AppTransport(create_app(harness.services))
    ).create_signed_in("A")
    assert "Messaging provider" not in (await client.get("/console/nodes")).text
    report = {
        "kind": "template",
        "subject": "one_time_code (fr)",
        "state": "PAUSED",
        "reason": "<b>SPAM</b>",
        "resolved": False,
        "occurred_at": "2026-01-31T12:00:00Z",
    }
    await harness.post(URL, json={"data": [report]}, auth=harness.get_service_auth())
    text = (await client.get("/console/nodes")).text
    assert "Messaging provider" in text and "one_time_code (fr)" in text
    assert "&lt;b&gt;SPAM&lt;/b&gt;" in text


def build_report(subject: str, **fields: Any) -> dict[str, Any]:
    return {
        "kind": "template",
        "subject": subject,
        "state": "PAUSED",
        "resolved": False,
        "occurred_at": "2026-01-31T12:00:00Z",
        **fields,
    }


async def report_all(harness: Harness, reports: list[dict[str, Any]]) -> None:
    for start in range(0, len(reports), 100):
        body = {"data": reports[start : start + 100]}
        response = await harness.post(URL, json=body, auth=harness.get_service_auth())
        assert response.status_code == 200, response.text


async def test_time_in_the_future_does_not_hide_later_reports(harness: Harness) -> None:
    future = build_report("receipt (en)", occurred_at="9999-12-31T23:59:59Z")
    await report_all(harness, [future])
    row = await harness.database.fetchrow("SELECT occurred_at, updated_at FROM provider_warnings")
    assert row is not None and row["occurred_at"] == row["updated_at"]
    resolved = build_report("receipt (en)", resolved=True, occurred_at="9999-12-31T23:59:59Z")
    await report_all(harness, [resolved])
    assert await list_warnings(harness) == []


async def test_number_of_stored_reports_is_bounded(harness: Harness) -> None:
    """Resolved reports, and then the oldest, are deleted first."""
    await report_all(harness, [build_report(f"solved {n}", resolved=True) for n in range(100)])
    old = [build_report(f"old {n}", occurred_at="2026-01-01T00:00:00Z") for n in range(100)]
    await report_all(harness, old + [build_report(f"new {n}") for n in range(900)])
    count = "SELECT count(*) FROM provider_warnings"
    assert await harness.database.fetchval(count) == 1000
    assert await harness.database.fetchval(f"{count} WHERE resolved") == 0
    await report_all(harness, [build_report(f"newest {n}") for n in range(30)])
    assert await harness.database.fetchval(count) == 1000
    assert await harness.database.fetchval(f"{count} WHERE subject LIKE 'old %'") == 70
