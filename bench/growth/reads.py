"""What is asked about one user, by an API client: pages of history, statements, the balance."""

from datetime import timedelta
from typing import Any, NamedTuple

import httpx2
import msgspec

from bench.payments import requests
from bench.payments.installation import Installation
from bench.payments.world import Card
from tapgate.admin.api_keys import operations as api_keys
from tapgate.admin.api_keys.model import NewApiKey
from tapgate.admin.queries import get_first_system_admin
from tapgate.clock import get_platform_day
from tapgate.edge.origin import SYSTEM_ORIGIN
from tapgate.edge.services import Services

PAGE = 20
_HISTORY = "/api/v1/transactions"
_STATEMENT = "/api/v1/wallet/account-statement"

FIRST_PAGE, MIDDLE_PAGE = "first page", "middle page"
TODAY, HALF_A_YEAR_AGO = "statement of today", "statement of a month"
BALANCE = "balance"
KINDS = (FIRST_PAGE, MIDDLE_PAGE, TODAY, HALF_A_YEAR_AGO, BALANCE)


class Asked(NamedTuple):
    """The requests by their kind, and how many lines the answer to each has."""

    requests: dict[str, bytes]
    lines: dict[str, int]


async def prepared(services: Services, installation: Installation, card: Card) -> Asked:
    key = await _api_key(services)
    async with httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{installation.port}",
        headers={"Authorization": f"Bearer {key}"},
        timeout=60.0,
    ) as client:
        reader = _Reader(client, services, card)
        paths = {FIRST_PAGE: reader.page(PAGE), MIDDLE_PAGE: await reader.middle_page()}
        bodies = {TODAY: reader.statement(0, 0), HALF_A_YEAR_AGO: reader.statement(180, 151)}
        lines = {kind: len((await _got(client, path))["data"]) for kind, path in paths.items()}
        for kind, body in bodies.items():
            lines[kind] = len((await _got(client, _STATEMENT, body))["entries"])
    made = {kind: _request("GET", path, key) for kind, path in paths.items()}
    made |= {kind: _request("POST", _STATEMENT, key, body) for kind, body in bodies.items()}
    return Asked({**made, BALANCE: requests.balance(card, key)}, lines)


class _Reader:
    def __init__(self, client: httpx2.AsyncClient, services: Services, card: Card) -> None:
        self._client = client
        self._user = card.subscriber_id
        self._today = get_platform_day(services.clock(), services.settings.timezone)

    def page(self, limit: int, cursor: str | None = None) -> str:
        after = "" if cursor is None else f"&cursor={cursor}"
        return f"{_HISTORY}?user_id={self._user}&limit={limit}{after}"

    async def middle_page(self) -> str:
        """Leaf through all of it, then take the page in the middle."""
        cursors, page = [None], await self._leaf(None)
        while page["has_more"]:
            cursors.append(page["next_cursor"])
            page = await self._leaf(page["next_cursor"])
        return self.page(PAGE, cursors[len(cursors) // 2])

    async def _leaf(self, cursor: str | None) -> Any:
        return await _got(self._client, self.page(PAGE, cursor))

    def statement(self, from_days_ago: int, to_days_ago: int) -> bytes:
        return msgspec.json.encode(
            {
                "subscriber_id": self._user,
                "from_date": str(self._today - timedelta(days=from_days_ago)),
                "to_date": str(self._today - timedelta(days=to_days_ago)),
            }
        )


async def _api_key(services: Services) -> str:
    admin_id = await get_first_system_admin(services.database)
    assert admin_id is not None
    wanted = NewApiKey(name="reader", scopes=["payments:read", "balance:read"])
    _, key = await api_keys.create(services, SYSTEM_ORIGIN, wanted, created_by=admin_id)
    return key


async def _got(client: httpx2.AsyncClient, path: str, body: bytes | None = None) -> Any:
    if body is None:
        answer = await client.get(path)
    else:
        answer = await client.post(path, content=body, headers={"Content-Type": "application/json"})
    answer.raise_for_status()
    return answer.json()


def _request(method: str, path: str, key: str, body: bytes = b"") -> bytes:
    return requests.request(method, path, requests.bearer(key), body)
