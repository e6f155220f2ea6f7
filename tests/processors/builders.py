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


async def create_processor(world: Harness, **fields: Any) -> dict[str, Any]:
    """Create a processor and return the response body."""
    new = {
        "name": "Corner Shop",
        "phone_number": world.new_phone_number(),
        "email": "shop@example.com",
        **fields,
    }
    answer = await world.client.post(PROCESSORS_URL, json=new, auth=await world.create_admin())
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def get_auth(answer: dict[str, Any]) -> HmacAuth:
    """Return the signing credential contained in a response."""
    return HmacAuth(answer["api_key_id"], answer["hmac_secret"])


async def probe_credential(client: httpx2.AsyncClient, credential: httpx2.Auth) -> tuple[int, str]:
    """Return the status and code of a request that no signing key may make.

    A valid key gets 403 FORBIDDEN; any other result describes why the key is not accepted.
    """
    answer = await client.get(PROCESSORS_URL, auth=credential)
    return answer.status_code, answer.json()["code"]


VALID_CREDENTIAL = (403, "FORBIDDEN")


async def deposit(world: Harness, processor_id: str, amount: str) -> None:
    """Deposit money to the settlement account."""
    outcome = await world.services.ledger.submit(
        Command(
            type=chart.TRANSFER,
            channel="admin",
            payer=commands.CASH_PARTY,
            payee=commands.processor_party(ids.decode(ids.PROCESSOR, processor_id) or 0),
            amount=money.parse(amount, world.services.settings.currency),
        )
    )
    outcome.require_accepted()
