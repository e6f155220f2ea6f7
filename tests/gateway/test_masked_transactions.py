"""Operations on a restricted subscriber's transactions: masked for admins, closed to API keys."""

import json

import httpx2
import pytest

from gateway import strangers
from gateway.house import said
from gateway.strangers import Town
from gateway.test_whose_objects import ACCESS, asked, callers, opened, town

__all__ = ["town"]  # the fixture


@pytest.mark.parametrize("name", strangers.MASKED_LISTS)
async def test_transactions_of_a_restricted_subscriber_are_listed_masked(
    town: Town, name: str
) -> None:
    person = await town.person(restricted=True)
    admin = await opened(town, person)
    traces = (person.card, person.blocked_card, person.phone, "Aminata Kamara")
    for path in strangers.MASKED_LISTS[name](town, person):
        for caller in callers(town, ACCESS[name], "api_key"):
            answer = await town.client.get(path, auth=caller.auth)
            assert answer.status_code == 200, answer.text
            assert person.transaction not in answer.text and person.id not in answer.text
        for caller in callers(town, ACCESS[name], "admin"):
            answer = await town.client.get(path, auth=caller.auth)
            assert answer.status_code == 200, (caller.name, answer.text)
            (row,) = (line for line in _rows(answer) if person.transaction in line)
            assert (person.id in row and "masked" in row) or row.endswith(",true"), row
            assert not [one for one in traces if one in row], (caller.name, row)
        for auth in (admin, *(one.auth for one in callers(town, ACCESS[name], "service"))):
            answer = await town.client.get(path, auth=auth)
            (row,) = (line for line in _rows(answer) if person.transaction in line)
            assert person.card in row and "masked" not in row and not row.endswith(",true"), row


def _rows(answer: httpx2.Response) -> list[str]:
    """The rows of a list, or of a CSV file."""
    if "csv" in answer.headers["content-type"]:
        return answer.text.splitlines()
    return [json.dumps(row) for row in answer.json()["data"]]


@pytest.mark.parametrize("name", strangers.MASKED)
async def test_a_transaction_of_a_restricted_subscriber_is_masked(town: Town, name: str) -> None:
    person = await town.person(restricted=True)
    admin = await opened(town, person)
    ask = strangers.MASKED[name](town, person, "")
    for caller in callers(town, ACCESS[name], "api_key"):
        assert said(await asked(town, ask, caller.auth)) == (403, "OTP_REQUIRED")
    masked = [await asked(town, ask, one.auth) for one in callers(town, ACCESS[name], "admin")]
    full = [await asked(town, ask, admin)]
    full += [await asked(town, ask, one.auth) for one in callers(town, ACCESS[name], "service")]
    assert {answer.status_code for answer in (*masked, *full)} == {200}
    for answer in masked:
        assert person.card not in answer.text and "Aminata" not in answer.text
        assert name.endswith("/chain") or answer.json()["masked"] is True
    assert not [answer.text for answer in full if "masked" in answer.text]
