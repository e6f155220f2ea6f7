"""No name or text of one person carries a link into what another person reads."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from builders.participants import create_agent as register_agent
from builders.participants import create_child_card
from builders.payments import create_agent, create_partner, create_processor, submit_and_get_id
from drivers.in_process import AppTransport
from harness import PIN, Harness, parse_error
from tapgate.core.settings import Settings
from tapgate.events.notifications.notification_messages import list_pending
from tapgate.events.notifications.receipts import ReceiptWorker
from tapgate.http.field_checks import get_rule_and_type, is_struct
from tapgate.ledger import chart
from tapgate.messenger import agent_requests, card_requests, gateway_requests
from tapgate.messenger.model import RequestSucceeded
from tapgate.server.gateway import ENDPOINT_GROUPS, create_app
from tapgate_client import NO_RETRIES, AsyncTapgateClient, ServiceSecret
from tapgate_client.schemas import fields
from tapgate_client.schemas.clearable_fields import OrEmptyRule
from tapgate_client.schemas.general_ledger import GlNameRule
from tapgate_client.schemas.pos import InAppPaymentRequest, PosPaymentRequest

LINK: Final = "https://evil.example/win"
HOSTILE_NAME: Final = f"You won! Claim at {LINK}\nSupport"
#: Names that customers see, and names that only staff see.
NAME_RULES: Final = (fields.PersonNameRule, fields.NameRule, GlNameRule)


@pytest.fixture
def settings(settings: Settings) -> Settings:
    return settings.replace(receipts="all")


def list_name_fields() -> Iterator[tuple[type, str, Any]]:
    for group in ENDPOINT_GROUPS:
        for endpoint in group:
            if is_struct(endpoint.body_type):
                for field in msgspec.structs.fields(endpoint.body_type):
                    if field.name == "name" or field.name.endswith("_name"):
                        yield endpoint.body_type, field.name, get_rule_and_type(field.type)[0]


def test_every_name_in_a_request_declares_its_rule() -> None:
    found = list(list_name_fields())
    assert len(found) > 10
    for struct, name, rule in found:
        if issubclass(struct, InAppPaymentRequest):
            continue  # free text; what customers see is cleaned
        inner = rule.rule if isinstance(rule, OrEmptyRule) else rule
        assert isinstance(inner, NAME_RULES), (struct, name)
    assert {InAppPaymentRequest, PosPaymentRequest} <= {struct for struct, *_ in found}


async def post_subscriber(harness: Harness, name: str, **body: Any) -> Any:
    person = {"first_name": "Ama", "last_name": "Bah", "pin": PIN, **body, **{name: HOSTILE_NAME}}
    person["phone_number"] = harness.new_phone_number()
    return await harness.post("/api/v1/subscribers", json=person, auth=harness.get_service_auth())


async def test_link_in_a_name_is_rejected_by_every_endpoint(harness: Harness) -> None:
    admin = await harness.create_admin()
    subscriber = await harness.create_subscriber()
    child, _ = await create_child_card(harness)
    agent = await create_agent(harness)
    phone = harness.new_phone_number
    company = {"name": HOSTILE_NAME, "phone_number": phone(), "email": "a@example.com"}
    partner = await create_partner(harness)
    blank_agent = {"agent_type": "super_agent", "name": "Ama", "phone_number": phone(), "pin": PIN}
    requests = [
        ("PUT", f"subscribers/{subscriber['id']}", {"first_name": HOSTILE_NAME}),
        ("PUT", f"subscribers/{subscriber['id']}", {"last_name": HOSTILE_NAME}),
        ("PUT", f"cards/{child}", {"child_name": HOSTILE_NAME}),
        ("POST", "agents", {**blank_agent, "name": HOSTILE_NAME}),
        ("POST", "agents", {**blank_agent, "business_name": HOSTILE_NAME}),
        ("PUT", f"agents/{agent}", {"business_name": HOSTILE_NAME}),
        ("POST", "processors", company),
        ("POST", "admin/partners", {"name": HOSTILE_NAME}),
        ("PUT", f"admin/partners/{partner}", {"name": HOSTILE_NAME}),
    ]
    for method, path, body in requests:
        response = await harness.client.request(method, f"/api/v1/{path}", json=body, auth=admin)
        assert parse_error(response) == (422, "VALIDATION_FAILED"), (path, response.text)
        name = next(name for name, value in body.items() if value == HOSTILE_NAME)
        assert name in response.json()["details"]["fields"], response.text
        assert LINK not in response.text
    for name in ("first_name", "last_name"):
        response = await post_subscriber(harness, name)
        assert parse_error(response) == (422, "VALIDATION_FAILED")
        assert list(response.json()["details"]["fields"]) == [name]


async def store_hostile_names(harness: Harness) -> None:
    """Give every person a name that earlier versions accepted."""
    database = harness.database
    await database.execute("UPDATE subscribers SET first_name = $1, last_name = $1", HOSTILE_NAME)
    await database.execute(
        "UPDATE accounts SET holder_name = $1, public_name = $1 WHERE owner_id IS NOT NULL",
        HOSTILE_NAME,
    )
    await database.execute("UPDATE cards SET holder_name = $1 WHERE type = 'CHILD'", HOSTILE_NAME)
    await database.execute("UPDATE agents SET business_name = $1, address = 'Lumley'", HOSTILE_NAME)


async def test_stored_link_reaches_no_other_person(harness: Harness) -> None:
    await harness.disable_compliance_rules()
    child, ama = await create_child_card(harness, balance="500")
    ben = await harness.create_subscriber(balance="500")
    card = await harness.create_card(ama["id"])
    agent, merchant = await create_agent(harness), await create_processor(harness)
    terminal = await harness.create_processor()
    partner = await create_partner(harness)
    await store_hostile_names(harness)
    for kind, payer in ((chart.PARTNER_DEPOSIT, partner), (chart.AGENT_FUND, agent)):
        await submit_and_get_id(harness, kind, "cash", payer, "100.00")
    for kind, payer, payee, context in (
        (chart.TRANSFER_P2P, ama["id"], ben["id"], {"memo": HOSTILE_NAME}),
        (chart.PARTNER_FUND, partner, ben["id"], None),
        (chart.AGENT_CASHIN, agent, ben["id"], None),
        (chart.AGENT_CASHOUT, ben["id"], agent, None),
        (chart.POS_PAYMENT, ben["id"], merchant, None),
        (chart.POS_PAYMENT, ben["id"], merchant, {"merchant_name": HOSTILE_NAME}),
        (chart.PROCESSOR_TRANSFER, merchant, ben["id"], {"memo": HOSTILE_NAME}),
    ):
        pins = {"payer_pin": PIN} if payer == agent else {}
        await submit_and_get_id(harness, kind, payer, payee, "5.00", context=context, **pins)
    service = harness.get_service_auth()
    shown: dict[str, str] = {}

    await ReceiptWorker(harness.services).enqueue_due()
    messages = await list_pending(
        harness.database, harness.services.vault, str(ben["phone_number"])
    )
    assert len(messages) == 7
    shown["receipts"] = repr([message.parameters for message in messages])

    day = harness.services.clock().date().isoformat()
    body = {"subscriber_id": ben["id"], "from_date": day, "to_date": day}
    response = await harness.post("/api/v1/wallet/account-statement", json=body, auth=service)
    assert response.status_code == 200, response.text
    shown["statement"] = repr(response.json()["entries"])

    response = await harness.get(
        "/api/v1/transactions", params={"user_id": ben["id"]}, auth=service
    )
    assert len(response.json()["data"]) == 8
    shown["transactions"] = response.text
    for serial in (card, child):
        response = await harness.post(
            "/api/v1/pos/lookup-card", json={"card_identifier": serial}, auth=terminal
        )
        assert response.status_code == 200
        shown[f"lookup of {serial}"] = response.text
    transfer = {
        "sender_id": ben["id"],
        "recipient_card_serial": card,
        "amount": "1",
        "pin": PIN,
        "request_id": "p2p-1",
    }
    response = await harness.post("/api/v1/wallet/transfer-p2p", json=transfer, auth=service)
    assert response.status_code == 200, response.text
    shown["transfer"] = response.text

    secret = harness.services.settings.service_secrets["messenger"]
    gateway = AsyncTapgateClient(
        "http://gateway",
        ServiceSecret("messenger", secret),
        retries=NO_RETRIES,
        http=AppTransport(create_app(harness.services)),
    )
    phone = str(ama["phone_number"])
    for request in (
        gateway_requests.FindSubscriber(phone=phone),
        gateway_requests.FindPayeeByPhone(phone=phone),
        gateway_requests.FindPayeeByCard(card_serial=card),
        gateway_requests.FindPayeeByCard(card_serial=child),
        gateway_requests.ListTransactions(subscriber_id=ben["id"], limit=20),
        card_requests.ListCards(subscriber_id=ama["id"]),
        agent_requests.FindAgents(place="Lumley", limit=5),
    ):
        outcome = await gateway_requests.perform(gateway, request)
        assert isinstance(outcome, RequestSucceeded), outcome
        assert outcome.result
        shown[type(request).__name__] = msgspec.json.encode(outcome.result).decode()
    for place, text in shown.items():
        assert "evil" not in text, (place, text)
        assert "\\n" not in text, (place, text)
        assert "You" in text, (place, text)

    admin = await harness.create_admin()
    response = await harness.get(f"/api/v1/subscribers/{ama['id']}", auth=admin)
    assert response.json()["first_name"] == HOSTILE_NAME  # staff see what is stored


async def test_agent_search_shortens_names_of_agents_who_are_people(harness: Harness) -> None:
    """Anyone can search for agents in the chat. A business name is public, a full name is not."""
    await register_agent(harness, name="Foday Bangura", address="1 Hill Road, Makeni")
    await register_agent(
        harness, name="Isatu Conteh", business_name="Conteh & Sons", address="2 Hill Road, Makeni"
    )
    gateway = AsyncTapgateClient(
        "http://gateway",
        ServiceSecret("messenger", harness.services.settings.service_secrets["messenger"]),
        retries=NO_RETRIES,
        http=AppTransport(create_app(harness.services)),
    )
    found = await agent_requests.FindAgents(place="Makeni", limit=5).perform(gateway)
    assert {agent.name for agent in found} == {"Foday B.", "Conteh & Sons"}
