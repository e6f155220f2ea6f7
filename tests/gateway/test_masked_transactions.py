"""Operations on a restricted subscriber's transactions: masked for admins, closed to API keys."""

import json

import httpx2
import pytest

from gateway import ownership_requests
from gateway.access_fixtures import get_status_and_code
from gateway.ownership_requests import OwnershipFixtures
from gateway.test_object_ownership import (
    ACCESS,
    create_verified_admin,
    list_allowed_callers,
    send,
    town,
)

__all__ = ["town"]  # the fixture


@pytest.mark.parametrize("name", ownership_requests.MASKED_LIST_REQUESTS)
async def test_transactions_of_a_restricted_subscriber_are_listed_masked(
    town: OwnershipFixtures, name: str
) -> None:
    person = await town.create_subscriber(restricted=True)
    admin = await create_verified_admin(town, person)
    traces = (person.card, person.blocked_card, person.phone, "Aminata Kamara")
    for path in ownership_requests.MASKED_LIST_REQUESTS[name](town, person):
        for caller in list_allowed_callers(town, ACCESS[name], "api_key"):
            answer = await town.client.get(path, auth=caller.auth)
            assert answer.status_code == 200, answer.text
            assert person.transaction_id not in answer.text and person.id not in answer.text
        for caller in list_allowed_callers(town, ACCESS[name], "admin"):
            answer = await town.client.get(path, auth=caller.auth)
            assert answer.status_code == 200, (caller.name, answer.text)
            (row,) = (line for line in _parse_rows(answer) if person.transaction_id in line)
            assert (person.id in row and "masked" in row) or row.endswith(",true"), row
            assert not [one for one in traces if one in row], (caller.name, row)
        for auth in (
            admin,
            *(one.auth for one in list_allowed_callers(town, ACCESS[name], "service")),
        ):
            answer = await town.client.get(path, auth=auth)
            (row,) = (line for line in _parse_rows(answer) if person.transaction_id in line)
            assert person.card in row and "masked" not in row and not row.endswith(",true"), row


def _parse_rows(answer: httpx2.Response) -> list[str]:
    """Return the rows of a list or a CSV file."""
    if "csv" in answer.headers["content-type"]:
        return answer.text.splitlines()
    return [json.dumps(row) for row in answer.json()["data"]]


@pytest.mark.parametrize("name", ownership_requests.MASKED_REQUESTS)
async def test_a_transaction_of_a_restricted_subscriber_is_masked(
    town: OwnershipFixtures, name: str
) -> None:
    person = await town.create_subscriber(restricted=True)
    admin = await create_verified_admin(town, person)
    ask = ownership_requests.MASKED_REQUESTS[name](town, person, "")
    for caller in list_allowed_callers(town, ACCESS[name], "api_key"):
        assert get_status_and_code(await send(town, ask, caller.auth)) == (403, "OTP_REQUIRED")
    masked = [
        await send(town, ask, one.auth) for one in list_allowed_callers(town, ACCESS[name], "admin")
    ]
    full = [await send(town, ask, admin)]
    full += [
        await send(town, ask, one.auth)
        for one in list_allowed_callers(town, ACCESS[name], "service")
    ]
    assert {answer.status_code for answer in (*masked, *full)} == {200}
    for answer in masked:
        assert person.card not in answer.text and "Aminata" not in answer.text
        assert name.endswith("/chain") or answer.json()["masked"] is True
    assert not [answer.text for answer in full if "masked" in answer.text]
