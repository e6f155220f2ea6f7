"""Helpers shared by the processor tests."""

from typing import Any

import httpx2

from harness import Harness, HmacAuth
from tapgate import ids, money
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command

PROCESSORS_URL = "/api/v1/processors"
SUSPEND_BODY = {"reason": "chargebacks"}
UNKNOWN_IDS = (ids.encode(ids.PROCESSOR, 1), "prc_1", "prc_" + "u" * 13, "sub_0000000000001", "é")


async def create_processor(harness: Harness, **fields: Any) -> dict[str, Any]:
    """Create a processor and return the response body."""
    new = {
        "name": "Corner Shop",
        "phone_number": harness.new_phone_number(),
        "email": "shop@example.com",
        **fields,
    }
    response = await harness.client.post(
        PROCESSORS_URL, json=new, auth=await harness.create_admin()
    )
    assert response.status_code == 201, response.text
    body: dict[str, Any] = response.json()
    return body


def get_auth(response: dict[str, Any]) -> HmacAuth:
    """Return the signing credential contained in a response."""
    return HmacAuth(response["api_key_id"], response["hmac_secret"])


async def probe_credential(client: httpx2.AsyncClient, credential: httpx2.Auth) -> tuple[int, str]:
    """Return the status and code of a request that no signing key may make.

    A valid key gets 403 FORBIDDEN; any other result describes why the key is not accepted.
    """
    response = await client.get(PROCESSORS_URL, auth=credential)
    return response.status_code, response.json()["code"]


VALID_CREDENTIAL = (403, "FORBIDDEN")


async def deposit(harness: Harness, processor_id: str, amount: str) -> None:
    """Deposit money to the settlement account."""
    outcome = await harness.services.ledger.submit(
        Command(
            type=chart.TRANSFER,
            channel="admin",
            payer=commands.CASH_PARTY,
            payee=commands.processor_party(ids.decode(ids.PROCESSOR, processor_id) or 0),
            amount=money.parse(amount, harness.services.settings.currency),
        )
    )
    outcome.require_accepted()
