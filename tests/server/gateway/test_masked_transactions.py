"""A restricted subscriber's transactions are masked for admins and hidden from API keys."""

import json

import httpx2
import pytest

from builders.object_access import (
    ACCESS,
    create_verified_admin,
    list_allowed_callers,
    send,
)
from server.gateway import ownership_requests
from server.gateway.fixtures import OwnershipFixtures, get_status_and_code


@pytest.mark.parametrize("name", ownership_requests.MASKED_LIST_REQUESTS)
async def test_transactions_of_a_restricted_subscriber_are_listed_masked(
    ownership_fixtures: OwnershipFixtures, name: str
) -> None:
    person = await ownership_fixtures.create_subscriber(restricted=True)
    admin = await create_verified_admin(ownership_fixtures, person)
    personal_values = (person.card, person.blocked_card, person.phone, "Aminata Kamara")
    for path in ownership_requests.MASKED_LIST_REQUESTS[name](ownership_fixtures, person):
        for caller in list_allowed_callers(ownership_fixtures, ACCESS[name], "api_key"):
            response = await ownership_fixtures.client.get(path, auth=caller.auth)
            assert response.status_code == 200, response.text
            assert person.transaction_id not in response.text and person.id not in response.text
        for caller in list_allowed_callers(ownership_fixtures, ACCESS[name], "admin"):
            response = await ownership_fixtures.client.get(path, auth=caller.auth)
            assert response.status_code == 200, (caller.name, response.text)
            (row,) = (item for item in _parse_rows(response) if person.transaction_id in item)
            assert (person.id in row and "masked" in row) or row.endswith(",true"), row
            assert not [item for item in personal_values if item in row], (caller.name, row)
        for auth in (
            admin,
            *(
                caller.auth
                for caller in list_allowed_callers(ownership_fixtures, ACCESS[name], "service")
            ),
        ):
            response = await ownership_fixtures.client.get(path, auth=auth)
            (row,) = (item for item in _parse_rows(response) if person.transaction_id in item)
            assert person.card in row and "masked" not in row and not row.endswith(",true"), row


def _parse_rows(response: httpx2.Response) -> list[str]:
    """Return the rows of a list or a CSV file."""
    if "csv" in response.headers["content-type"]:
        return response.text.splitlines()
    return [json.dumps(row) for row in response.json()["data"]]


@pytest.mark.parametrize("name", ownership_requests.MASKED_REQUESTS)
async def test_transaction_of_a_restricted_subscriber_is_masked(
    ownership_fixtures: OwnershipFixtures, name: str
) -> None:
    person = await ownership_fixtures.create_subscriber(restricted=True)
    admin = await create_verified_admin(ownership_fixtures, person)
    request = ownership_requests.build_request(name, ownership_fixtures, person, "")
    for caller in list_allowed_callers(ownership_fixtures, ACCESS[name], "api_key"):
        assert get_status_and_code(await send(ownership_fixtures, request, caller.auth)) == (
            403,
            "OTP_REQUIRED",
        )
    masked = [
        await send(ownership_fixtures, request, caller.auth)
        for caller in list_allowed_callers(ownership_fixtures, ACCESS[name], "admin")
    ]
    full = [await send(ownership_fixtures, request, admin)]
    full += [
        await send(ownership_fixtures, request, caller.auth)
        for caller in list_allowed_callers(ownership_fixtures, ACCESS[name], "service")
    ]
    assert {response.status_code for response in (*masked, *full)} == {200}
    for response in masked:
        assert person.card not in response.text and "Aminata" not in response.text
        assert name.endswith("/chain") or response.json()["masked"] is True
    assert not [response.text for response in full if "masked" in response.text]
