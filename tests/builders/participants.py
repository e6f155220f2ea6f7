"""Agents, cards, partners and processors, and their operations over HTTP."""

import itertools
import json
from typing import Any

import httpx2

from builders.payments import submit_and_get_id
from harness import PIN, Harness, HmacAuth, insert_row
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, Outcome
from tapgate_client import ids, money, signing

AGENTS_URL = "/api/v1/agents"
AGENT_PIN = "5927"


def build_registration(harness: Harness, **fields: Any) -> dict[str, Any]:
    return {
        "agent_type": "super_agent",
        "name": "Foday Bangura",
        "phone_number": harness.new_phone_number(),
        "pin": AGENT_PIN,
        **fields,
    }


async def register_agent(harness: Harness, **fields: Any) -> httpx2.Response:
    return await harness.post(
        AGENTS_URL, json=build_registration(harness, **fields), auth=await harness.create_admin()
    )


async def create_agent(harness: Harness, *, balance: str = "0", **fields: Any) -> dict[str, Any]:
    """Create an agent whose PIN is `AGENT_PIN` and return its record."""
    response = await register_agent(harness, **fields)
    assert response.status_code == 201, response.text
    record: dict[str, Any] = response.json()["agent"]
    if balance != "0":
        response = await fund_agent(harness, record, balance)
        assert response.status_code == 200, response.text
    return record


async def create_sub_agent(harness: Harness, parent: dict[str, Any], **more: Any) -> dict[str, Any]:
    return await create_agent(harness, agent_type="sub_agent", parent_agent_id=parent["id"], **more)


async def post_as_admin(harness: Harness, path: str, **body: Any) -> httpx2.Response:
    """Send a POST as a system_admin, who has full access to agents."""
    return await harness.post(AGENTS_URL + path, json=body, auth=await harness.create_admin())


async def fund_agent(
    harness: Harness, agent: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    return await post_as_admin(harness, f"/{agent['id']}/fund", amount=amount, **more)


async def change_status(harness: Harness, agent: dict[str, Any], verb: str) -> httpx2.Response:
    return await post_as_admin(harness, f"/{agent['id']}/{verb}", reason="agent asked")


async def create_agent_in_status(harness: Harness, status: str) -> dict[str, Any]:
    agent = await create_agent(harness)
    if status != "active":
        verb = {"suspended": "suspend", "terminated": "terminate"}[status]
        response = await change_status(harness, agent, verb)
        assert response.status_code == 200, response.text
    return agent


async def cash_in(
    harness: Harness, agent: dict[str, Any], customer: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    body = _build_cash_body(agent, customer, amount)
    return await post_as_admin(harness, "/cashin", **{**body, **more})


async def cash_out(
    harness: Harness, agent: dict[str, Any], customer: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    body = _build_cash_body(agent, customer, amount)
    return await post_as_admin(harness, "/cashout", **{**body, "pin": PIN, **more})


def _build_cash_body(
    agent: dict[str, Any], customer: dict[str, Any], amount: str
) -> dict[str, Any]:
    return {
        "agent_id": agent["id"],
        "subscriber_id": customer["id"],
        "amount": amount,
        "agent_pin": AGENT_PIN,
    }


async def transfer_float(
    harness: Harness, sender: dict[str, Any], receiver: dict[str, Any], amount: str, **more: Any
) -> httpx2.Response:
    body = {
        "from_agent_id": sender["id"],
        "to_agent_id": receiver["id"],
        "amount": amount,
        "pin": AGENT_PIN,
        **more,
    }
    return await post_as_admin(harness, "/transfer", **body)


async def pay_out_commission(
    harness: Harness, agent: dict[str, Any], **more: Any
) -> httpx2.Response:
    return await post_as_admin(harness, f"/{agent['id']}/payout-commission", **more)


async def get_balances(harness: Harness, agent: dict[str, Any]) -> tuple[str, str]:
    """Return the float and commission balances."""
    response = await harness.get(
        f"{AGENTS_URL}/{agent['id']}/balance", auth=await harness.create_api_key("balance:read")
    )
    balances = response.json()
    return balances["float_balance"], balances["commission_balance"]


CARDS_URL = "/api/v1/cards"
CHILD_PIN = "8350"

_sequence = itertools.count(1)


async def create_card(harness: Harness, **fields: Any) -> str:
    """Create an unassigned card and return its serial."""
    number, now = next(_sequence), harness.services.clock()
    columns = {
        "id": harness.services.new_id(),
        "serial": f"NEW-{number:06d}",
        "status": "UNASSIGNED",
        "created_at": now,
        "updated_at": now,
        **fields,
    }
    await insert_row(harness.database, "cards", **columns)
    return str(columns["serial"])


async def link_card(
    harness: Harness, serial: str, subscriber_id: str, *, pin: str = PIN, caller: Any = None
) -> httpx2.Response:
    return await harness.post(
        f"{CARDS_URL}/link",
        json={"subscriber_id": subscriber_id, "card_serial": serial, "pin": pin},
        auth=caller or harness.get_service_auth(),
    )


def build_child_link_request(serial: str, subscriber_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "parent_subscriber_id": subscriber_id,
        "card_serial": serial,
        "parent_pin": PIN,
        "child_pin": CHILD_PIN,
        "daily_limit": "100.00",
        "child_name": "Ibrahim Kamara",
        **fields,
    }


async def link_child_card(
    harness: Harness, serial: str, subscriber_id: str, *, caller: Any = None, **fields: Any
) -> httpx2.Response:
    return await harness.post(
        f"{CARDS_URL}/child",
        json=build_child_link_request(serial, subscriber_id, **fields),
        auth=caller or await harness.create_admin("S"),
    )


async def create_child_card(
    harness: Harness, *, balance: str = "0", **fields: Any
) -> tuple[str, dict[str, Any]]:
    """Create a child card whose PIN is `CHILD_PIN`; return its serial and the parent's record."""
    parent, serial = await harness.create_subscriber(balance=balance), await create_card(harness)
    response = await link_child_card(harness, serial, parent["id"], **fields)
    assert response.status_code == 201, response.text
    return serial, parent


async def block_card(
    harness: Harness, serial: str, reason: str = "fraud", *, caller: Any = None
) -> httpx2.Response:
    return await harness.post(
        f"{CARDS_URL}/{serial}/block",
        json={"reason": reason},
        auth=caller or harness.get_service_auth(),
    )


async def unblock_card(harness: Harness, serial: str, *, caller: Any = None) -> httpx2.Response:
    return await harness.post(
        f"{CARDS_URL}/{serial}/unblock", auth=caller or harness.get_service_auth()
    )


async def pay_by_card(harness: Harness, serial: str, amount: str, pin: str) -> Outcome:
    """Transfer money from a card to a new subscriber, with a PIN."""
    receiver = ids.decode(ids.SUBSCRIBER, (await harness.create_subscriber())["id"]) or 0
    return await harness.services.ledger.submit(
        Command(
            type=chart.TRANSFER_P2P,
            channel="pos",
            payer=commands.card_party(serial),
            payee=commands.subscriber_party(receiver),
            amount=money.parse(amount, "SLE"),
            payer_pin=pin,
            pin_policy="required",
        )
    )


async def get_card(harness: Harness, serial: str) -> dict[str, Any]:
    response = await harness.get(f"{CARDS_URL}/{serial}", auth=harness.get_service_auth())
    assert response.status_code == 200, response.text
    record: dict[str, Any] = response.json()
    return record


async def create_webhook_endpoint(harness: Harness) -> None:
    """Create a webhook endpoint for all events, so that events are stored."""
    await harness.database.execute(
        """INSERT INTO webhook_endpoints (id, url, events, secret, created_at)
           VALUES ($1, 'https://example.com', '{*}', '', now())""",
        harness.services.new_id(),
    )


async def list_events(harness: Harness) -> list[tuple[str, Any]]:
    """Return type and data of all stored events except transaction events, in order."""
    rows = await harness.database.fetch(
        "SELECT type, data FROM events WHERE type NOT LIKE 'transaction.%' ORDER BY id"
    )
    return [(row["type"], row["data"]) for row in rows]


PARTNERS_URL = "/api/v1/admin/partners"
FUND_URL = "/api/v1/wallet/fund-from-partner"
UNKNOWN_PARTNER_IDS = (
    ids.encode(ids.PARTNER, 1),
    "ptn_1",
    "ptn_" + "u" * 13,
    "sub_0000000000001",
    "é",
)


async def create_partner(
    harness: Harness, *, balance: str | None = None, **fields: Any
) -> dict[str, Any]:
    """Create a partner and return the response body."""
    admin = await harness.create_admin()
    response = await harness.post(PARTNERS_URL, json={"name": "Big Bank", **fields}, auth=admin)
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    if balance is not None:
        url = f"{PARTNERS_URL}/{body['partner']['id']}/fund"
        assert (await harness.post(url, json={"amount": balance}, auth=admin)).is_success
    return body


async def suspend_partner(harness: Harness, new: dict[str, Any]) -> None:
    url = f"{PARTNERS_URL}/{new['partner']['id']}/suspend"
    response = await harness.post(url, auth=await harness.create_admin())
    assert response.status_code == 200, response.text


def get_partner_auth(new: dict[str, Any]) -> HmacAuth:
    """Return a new partner's signing credential."""
    return HmacAuth(new["api_key_id"], new["hmac_secret"], new["partner"]["id"])


async def get_partner_balance(harness: Harness, new: dict[str, Any]) -> str:
    response = await harness.get(
        f"{PARTNERS_URL}/{new['partner']['id']}", auth=await harness.create_admin()
    )
    return str(response.json()["balance"])


async def get_wallet_balance(harness: Harness, subscriber: dict[str, Any]) -> str:
    url = f"/api/v1/subscribers/{subscriber['id']}"
    return str((await harness.get(url, auth=harness.get_service_auth())).json()["balance"])


async def post_webhook(
    client: httpx2.AsyncClient, new: dict[str, Any], body: object, **headers: str
) -> httpx2.Response:
    """Send a partner webhook, signed unless `headers` has a signature. Bytes are sent as is."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    signature = signing.webhook_signature(new["webhook_secret"].encode(), raw)
    return await client.post(
        f"/api/v1/webhooks/partners/{new['partner']['id']}",
        content=raw,
        headers={"X-Webhook-Signature": signature, **headers},
    )


PROCESSORS_URL = "/api/v1/processors"
SUSPEND_BODY = {"reason": "chargebacks"}
UNKNOWN_PROCESSOR_IDS = (
    ids.encode(ids.PROCESSOR, 1),
    "prc_1",
    "prc_" + "u" * 13,
    "sub_0000000000001",
    "é",
)


async def create_processor(harness: Harness, **fields: Any) -> dict[str, Any]:
    """Create a processor and return the response body."""
    new = {
        "name": "Corner Shop",
        "phone_number": harness.new_phone_number(),
        "email": "shop@example.com",
        **fields,
    }
    response = await harness.post(PROCESSORS_URL, json=new, auth=await harness.create_admin())
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


def get_processor_auth(response: dict[str, Any]) -> HmacAuth:
    """Return the signing credential contained in a response."""
    return HmacAuth(response["api_key_id"], response["hmac_secret"])


async def probe_credential(client: httpx2.AsyncClient, credential: httpx2.Auth) -> tuple[int, str]:
    """Return the status and code for a request that no signing key may make.

    A valid key gets 403 FORBIDDEN; any other result describes why the key is not accepted.
    """
    response = await client.get(PROCESSORS_URL, auth=credential)
    return response.status_code, response.json()["code"]


VALID_CREDENTIAL = (403, "FORBIDDEN")


async def deposit_to_processor(harness: Harness, processor_id: str, amount: str) -> None:
    await submit_and_get_id(harness, chart.TRANSFER, "cash", processor_id, amount, channel="admin")
