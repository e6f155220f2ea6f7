"""What owner users and keys do with refunds, disputes, cash, webhooks and statements."""

import asyncio
import csv
import io
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from builders.disputes import DisputeDriver
from builders.participants import AGENT_PIN, create_agent
from builders.payments import new_request_id
from builders.payouts import create_bank_account, request_payout
from harness import PIN, BearerAuth, Harness
from tapgate_client import ids, money

V1 = "/api/v1"


@pytest.fixture
async def pos(harness: Harness) -> DisputeDriver:
    driver = await DisputeDriver.create(harness, balance="9000")
    await harness.disable_compliance_rules()
    return driver


@pytest.fixture
async def shop(harness: Harness, pos: DisputeDriver) -> str:
    return await harness.get_processor_id(pos.merchant_auth)


@pytest.fixture
async def manager(harness: Harness, shop: str) -> BearerAuth:
    return await harness.create_owner_user("M", shop)


@pytest.fixture
async def cashier(harness: Harness, shop: str) -> BearerAuth:
    return await harness.create_owner_user("K", shop)


async def refund(harness: Harness, payment: str, auth: Any, amount: str | None = None) -> Any:
    body = {"request_id": new_request_id(), "reason": "returned goods", "amount": amount}
    return await harness.post(f"{V1}/transactions/{payment}/refund", json=body, auth=auth)


async def test_cashier_refunds_up_to_the_limit_with_earlier_refunds_counted(
    harness: Harness, pos: DisputeDriver, cashier: BearerAuth, manager: BearerAuth
) -> None:
    payment = await pos.create_payment("1500.00", pin=PIN)
    assert (await refund(harness, payment, manager, "400")).status_code == 200
    above = await refund(harness, payment, cashier, "600.01")
    assert (above.status_code, above.json()["code"]) == (403, "FORBIDDEN")
    assert above.json()["details"] == {"required": ["merchant_manager"], "limit": "1000.00"}
    assert (await refund(harness, payment, cashier, "600")).status_code == 200
    assert (await refund(harness, payment, cashier, "0.01")).status_code == 403
    assert (await refund(harness, payment, manager, "0.01")).status_code == 200


async def test_parallel_refunds_of_cashiers_do_not_exceed_the_limit(
    harness: Harness, pos: DisputeDriver, cashier: BearerAuth
) -> None:
    payment = await pos.create_payment("1500.00", pin=PIN)
    responses = await asyncio.gather(*(refund(harness, payment, cashier, "300") for _ in range(6)))
    assert sorted(response.status_code for response in responses) == [200] * 3 + [403] * 3


async def test_refund_of_a_foreign_payment_is_not_found(
    harness: Harness, cashier: BearerAuth
) -> None:
    other = await DisputeDriver.create(harness)
    payment = await other.create_payment("10.00")
    expected = await refund(harness, ids.encode(ids.TRANSACTION, 1 << 30), cashier)
    response = await refund(harness, payment, cashier)
    assert (response.status_code, response.json()) == (404, expected.json())


async def test_manager_refunds_a_restricted_customer(
    harness: Harness, pos: DisputeDriver, manager: BearerAuth
) -> None:
    payment = await pos.create_payment("50.00")
    await harness.database.execute("UPDATE subscribers SET restricted = true")
    assert (await refund(harness, payment, manager)).status_code == 200


async def test_cashier_responds_to_disputes_and_accepts_up_to_the_limit(
    harness: Harness, pos: DisputeDriver, cashier: BearerAuth, manager: BearerAuth
) -> None:
    payment = await pos.create_payment("1200.00", pin=PIN)
    dispute = (await pos.dispute(payment)).json()
    answered = await pos.act(dispute, "respond", auth=cashier, text="Delivered on Monday")
    assert (answered.status_code, answered.json()["status"]) == (200, "answered")
    accepted = await pos.act(dispute, "respond", auth=cashier, text="Sorry", accept=True)
    assert (accepted.status_code, accepted.json()["code"]) == (403, "FORBIDDEN")
    accepted = await pos.act(dispute, "respond", auth=manager, text="Sorry", accept=True)
    assert (accepted.status_code, accepted.json()["status"]) == (200, "refunded")


async def cash(
    harness: Harness, verb: str, auth: Any, agent: str, customer: str, **more: Any
) -> Any:
    body = {
        "agent_id": agent,
        "subscriber_id": customer,
        "amount": "50",
        "agent_pin": AGENT_PIN,
        "request_id": new_request_id(),
        **more,
    }
    return await harness.post(f"{V1}/agents/{verb}", json=body, auth=auth)


async def test_agents_key_cashes_in_and_out_without_the_customers_balance(
    harness: Harness,
) -> None:
    own, other = [(await create_agent(harness, balance="500"))["id"] for _ in range(2)]
    customer = (await harness.create_subscriber(balance="100"))["id"]
    key = await harness.create_api_key("payments:write", owner_id=own)
    for verb, more in (("cashin", {}), ("cashout", {"pin": PIN})):
        done = await cash(harness, verb, key, own, customer, **more)
        assert done.status_code == 200, done.text
        assert done.json()["subscriber_balance"] is None
        assert done.json()["agent_balance"]
        foreign = await cash(harness, verb, key, other, customer, **more)
        assert (foreign.status_code, foreign.json()["code"]) == (404, "AGENT_NOT_FOUND")
    declined = await cash(harness, "cashout", key, own, customer, pin=PIN, amount="4000")
    assert declined.json()["code"] == "INSUFFICIENT_FUNDS"
    assert "100" not in declined.text
    user = await harness.create_owner_user("G", own)
    assert (await cash(harness, "cashin", user, own, customer)).status_code == 403


async def test_agent_user_sees_the_agent_and_its_sub_agents(harness: Harness) -> None:
    parent, other = [await create_agent(harness, balance="5") for _ in range(2)]
    sub = await create_agent(
        harness, agent_type="sub_agent", parent_agent_id=parent["id"], balance="3"
    )
    user = await harness.create_owner_user("G", parent["id"])
    listed = (await harness.get(f"{V1}/agents", auth=user)).json()["data"]
    assert {item["id"] for item in listed} == {parent["id"], sub["id"]}
    of_parent = f"{V1}/agents?parent_agent_id={parent['id']}"
    assert [item["id"] for item in (await harness.get(of_parent, auth=user)).json()["data"]] == [
        sub["id"]
    ]
    balance = await harness.get(f"{V1}/agents/{sub['id']}/balance", auth=user)
    assert balance.json()["float_balance"] == "3.00"
    assert (await harness.get(f"{V1}/agents/{other['id']}", auth=user)).status_code == 404
    foreign = f"{V1}/agents?parent_agent_id={other['id']}"
    assert (await harness.get(foreign, auth=user)).json()["data"] == []


async def list_events(harness: Harness, endpoint_id: str) -> list[str]:
    rows = await harness.database.fetch(
        """SELECT events.type FROM deliveries JOIN events ON events.id = event_id
           WHERE endpoint_id = $1 ORDER BY deliveries.id""",
        ids.decode(ids.WEBHOOK_ENDPOINT, endpoint_id),
    )
    return [row["type"] for row in rows]


async def test_owners_webhook_endpoint_receives_only_its_events(
    harness: Harness, pos: DisputeDriver, shop: str, manager: BearerAuth
) -> None:
    body = {"url": "http://127.0.0.1:9/", "events": ["*"]}
    created = await harness.post(f"{V1}/admin/webhook-endpoints", json=body, auth=manager)
    assert (created.status_code, created.json()["owner_id"]) == (201, shop)
    endpoint = created.json()["id"]
    other = await DisputeDriver.create(harness)
    await create_bank_account(harness, shop)
    for driver in (other, pos):
        dispute = await driver.create_dispute("30.00", description=None)
        await driver.act(dispute, "respond", text="Delivered")
    await pos.create_payment("60.00")
    await request_payout(harness, shop, amount="10")
    await harness.create_subscriber()
    admin = await harness.create_admin()
    for processor in (await harness.get_processor_id(other.merchant_auth), shop):
        url = f"{V1}/processors/{processor}/suspend"
        assert (await harness.post(url, json={"reason": "x"}, auth=admin)).status_code == 200
    assert await list_events(harness, endpoint) == [
        "transaction.completed",
        "dispute.created",
        "dispute.answered",
        "transaction.completed",
        "transaction.completed",
        "payout.requested",
        "processor.suspended",
    ]
    deliveries = await harness.get(
        f"{V1}/admin/webhook-endpoints/{endpoint}/deliveries", auth=manager
    )
    payload = await harness.get(
        f"{V1}/admin/webhook-endpoints/{endpoint}/deliveries/{deliveries.json()['data'][-1]['id']}",
        auth=manager,
    )
    assert payload.json()["payload"]["data"]["from"]["name"] == "Aminata K."
    assert "Kamara" not in payload.text


async def test_agents_endpoint_receives_its_low_float(harness: Harness) -> None:
    agents = [await create_agent(harness, balance="1010") for _ in range(2)]
    admin, endpoints = await harness.create_admin(), []
    for agent in agents:
        body = {"url": "http://127.0.0.1:9/", "events": ["agent.float_low"]}
        created = await harness.post(
            f"{V1}/admin/webhook-endpoints", json={**body, "owner_id": agent["id"]}, auth=admin
        )
        endpoints.append(created.json()["id"])
    customer = (await harness.create_subscriber())["id"]
    done = await cash(harness, "cashin", admin, agents[0]["id"], customer)
    assert done.status_code == 200, done.text
    assert [await list_events(harness, item) for item in endpoints] == [["agent.float_low"], []]


async def test_request_log_has_the_requests_with_the_owners_keys(
    harness: Harness, pos: DisputeDriver, manager: BearerAuth
) -> None:
    other = await DisputeDriver.create(harness)
    for driver in (pos, other):
        await driver.create_payment("10.00")
    await harness.services.request_log.flush()
    listed = await harness.get(f"{V1}/admin/request-logs", auth=manager)
    (entry,) = listed.json()["data"]
    assert (entry["api_key_id"], entry["endpoint"]) == (pos.merchant_auth.id, f"{V1}/pos/payment")
    found = await harness.get(f"{V1}/admin/request-logs/{entry['id']}", auth=manager)
    assert found.status_code == 200


def build_period(harness: Harness) -> dict[str, str]:
    today = harness.services.clock().date()
    return {"from": str(today - timedelta(days=2)), "to": str(today + timedelta(days=1))}


async def test_statement_equals_the_ledger_to_the_cent(
    harness: Harness, pos: DisputeDriver, shop: str, manager: BearerAuth
) -> None:
    await create_bank_account(harness, shop)
    payment = await pos.create_payment("100.10")
    await pos.create_payment("30.20")
    assert (await refund(harness, payment, manager, "20.05")).status_code == 200
    await request_payout(harness, shop, amount="50")
    record = (
        await harness.post(f"{V1}/statements", json=build_period(harness), auth=manager)
    ).json()
    balance = await harness.database.fetchval(
        "SELECT balance FROM accounts WHERE owner_id = $1", ids.decode(ids.PROCESSOR, shop)
    )
    assert record["owner"] == {"id": shop, "name": "Shop"}
    assert record["opening_balance"] == "0.00"
    assert record["closing_balance"] == money.format_decimal(balance, "SLE")
    entries = record["entries"]
    assert entries[-1]["balance"] == record["closing_balance"]
    assert {"pos_payment", "refund", "payout"} <= {entry["type"] for entry in entries}
    assert entries[0]["description"] == "Card payment from Aminata K."
    total = sum(
        money.parse(entry["credit"], "SLE", allow_zero=True)
        - money.parse(entry["debit"], "SLE", allow_zero=True)
        for entry in entries
    )
    assert total == balance


async def test_statement_files_have_the_same_entries(
    harness: Harness, pos: DisputeDriver, shop: str
) -> None:
    await pos.create_payment("100.10")
    for role in ("A", "F", "S"):
        admin = await harness.create_admin(role)
        body = {**build_period(harness), "owner_id": shop}
        record = (await harness.post(f"{V1}/statements", json=body, auth=admin)).json()
        created = await harness.post(f"{V1}/statements", json={**body, "format": "csv"}, auth=admin)
        file = await harness.get(urlsplit(created.json()["statement_url"]).path)
        rows = list(csv.DictReader(io.StringIO(file.content.decode("utf-8-sig"))))
        assert rows[0]["type"] == "opening_balance"
        assert [row["balance"] for row in rows[1:]] == [
            entry["balance"] for entry in record["entries"]
        ]
    created = await harness.post(f"{V1}/statements", json={**body, "format": "pdf"}, auth=admin)
    file = await harness.get(urlsplit(created.json()["statement_url"]).path)
    assert file.content.startswith(b"%PDF")


async def test_statement_hides_restricted_customers_and_needs_an_owner(
    harness: Harness, pos: DisputeDriver, manager: BearerAuth, cashier: BearerAuth
) -> None:
    await pos.create_payment("10.00", memo=None)
    await harness.database.execute("UPDATE subscribers SET restricted = true")
    period = build_period(harness)
    response = await harness.post(f"{V1}/statements", json=period, auth=manager)
    assert response.json()["entries"][0]["description"] == "Card payment from a customer"
    assert "Aminata" not in response.text
    admin = await harness.create_admin("F")
    response = await harness.post(f"{V1}/statements", json=period, auth=admin)
    assert (response.status_code, list(response.json()["details"]["fields"])) == (422, ["owner_id"])
    response = await harness.post(f"{V1}/statements", json=period, auth=cashier)
    assert response.status_code == 403


async def test_suspended_owner_gets_a_statement(
    harness: Harness, shop: str, manager: BearerAuth
) -> None:
    admin = await harness.create_admin()
    await harness.post(f"{V1}/processors/{shop}/suspend", json={"reason": "x"}, auth=admin)
    key = await harness.create_api_key("payments:read", owner_id=shop)
    for caller in (manager, key):
        response = await harness.post(f"{V1}/statements", json=build_period(harness), auth=caller)
        assert response.status_code == 200, response.text
    response = await harness.post(
        f"{V1}/processors/{shop}/terminals", json={"name": "Till"}, auth=manager
    )
    assert (response.status_code, response.json()["code"]) == (403, "PROCESSOR_SUSPENDED")
