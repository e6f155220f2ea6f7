"""Words that the tests of processors share."""

from typing import Any

import httpx2

from tapgate import ids, money
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command
from world import RequestSignature, World

URL = "/api/v1/processors"
REASON = {"reason": "chargebacks"}
UNKNOWN = (ids.encode(ids.PROCESSOR, 1), "prc_1", "prc_" + "u" * 13, "sub_0000000000001", "é")


async def created(world: World, **fields: Any) -> dict[str, Any]:
    """What is answered about a new processor."""
    new = {
        "name": "Corner Shop",
        "phone_number": world.phone(),
        "email": "shop@example.com",
        **fields,
    }
    answer = await world.client.post(URL, json=new, auth=await world.admin())
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def signed(answer: dict[str, Any]) -> RequestSignature:
    """The credential that an answer gave out."""
    return RequestSignature(answer["api_key_id"], answer["hmac_secret"])


async def said_to(client: httpx2.AsyncClient, credential: httpx2.Auth) -> tuple[int, str]:
    """403 FORBIDDEN for a good key, which never may do this; what else is said to one that is
    not good any more."""
    answer = await client.get(URL, auth=credential)
    return answer.status_code, answer.json()["code"]


GOOD = (403, "FORBIDDEN")


async def give(world: World, processor_id: str, amount: str) -> None:
    """Money arrives on the settlement account."""
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
