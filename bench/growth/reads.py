"""Read requests by an API client about one subscriber: history pages, statements, balance."""

from datetime import timedelta
from typing import Any, NamedTuple

import httpx2
import msgspec

from bench.payments import requests
from bench.payments.dataset import Card
from bench.payments.installation import Installation
from tapgate.auth.actors import SYSTEM_ACTOR
from tapgate.business.staff.api_keys import operations as api_keys
from tapgate.business.staff.queries import get_first_system_admin
from tapgate.http.api.services import Services
from tapgate_client.clock import get_platform_day
from tapgate_client.schemas.admin import NewApiKey, Scope

PAGE_SIZE = 20
_HISTORY_PATH = "/api/v1/transactions"
_STATEMENT_PATH = "/api/v1/wallet/account-statement"

FIRST_PAGE, MIDDLE_PAGE = "first page", "middle page"
TODAY, PAST_MONTH = "statement of today", "statement of a month"
BALANCE = "balance"
KINDS = (FIRST_PAGE, MIDDLE_PAGE, TODAY, PAST_MONTH, BALANCE)


class PreparedReads(NamedTuple):
    """Requests by kind, and the number of lines in each response except the balance."""

    requests: dict[str, bytes]
    lines: dict[str, int]


async def prepare_reads(
    services: Services, installation: Installation, card: Card
) -> PreparedReads:
    key = await _create_api_key(services)
    async with httpx2.AsyncClient(
        base_url=f"http://127.0.0.1:{installation.port}",
        headers={"Authorization": f"Bearer {key}"},
        timeout=60.0,
    ) as client:
        planner = _ReadPlanner(client, services, card)
        paths = {
            FIRST_PAGE: planner.build_page_path(PAGE_SIZE),
            MIDDLE_PAGE: await planner.find_middle_page(),
        }
        bodies = {
            TODAY: planner.build_statement_body(0, 0),
            PAST_MONTH: planner.build_statement_body(180, 151),
        }
        lines = {
            kind: len((await _fetch_json(client, path))["data"]) for kind, path in paths.items()
        }
        for kind, body in bodies.items():
            lines[kind] = len((await _fetch_json(client, _STATEMENT_PATH, body))["entries"])
    built = {kind: _build_request("GET", path, key) for kind, path in paths.items()}
    built |= {
        kind: _build_request("POST", _STATEMENT_PATH, key, body) for kind, body in bodies.items()
    }
    return PreparedReads({**built, BALANCE: requests.build_balance_read(card, key)}, lines)


class _ReadPlanner:
    def __init__(self, client: httpx2.AsyncClient, services: Services, card: Card) -> None:
        self._client = client
        self._subscriber_id = card.subscriber_id
        self._today = get_platform_day(services.clock(), services.settings.timezone)

    def build_page_path(self, limit: int, cursor: str | None = None) -> str:
        cursor_query = "" if cursor is None else f"&cursor={cursor}"
        return f"{_HISTORY_PATH}?user_id={self._subscriber_id}&limit={limit}{cursor_query}"

    async def find_middle_page(self) -> str:
        """Iterate over all pages and return the middle page's path."""
        cursors, page = [None], await self._fetch_page(None)
        while page["has_more"]:
            cursors.append(page["next_cursor"])
            page = await self._fetch_page(page["next_cursor"])
        return self.build_page_path(PAGE_SIZE, cursors[len(cursors) // 2])

    async def _fetch_page(self, cursor: str | None) -> Any:
        return await _fetch_json(self._client, self.build_page_path(PAGE_SIZE, cursor))

    def build_statement_body(self, from_days_ago: int, to_days_ago: int) -> bytes:
        return msgspec.json.encode(
            {
                "subscriber_id": self._subscriber_id,
                "from_date": str(self._today - timedelta(days=from_days_ago)),
                "to_date": str(self._today - timedelta(days=to_days_ago)),
            }
        )


async def _create_api_key(services: Services) -> str:
    admin_id = await get_first_system_admin(services.database)
    assert admin_id is not None
    new_key = NewApiKey(name="reader", scopes=[Scope.PAYMENTS_READ, Scope.BALANCE_READ])
    async with services.transaction() as tx:
        _, key = await api_keys.create(
            tx,
            SYSTEM_ACTOR,
            new_key,
            created_by=admin_id,
            api_keys=services.authenticator.api_keys,
        )
    return key


async def _fetch_json(client: httpx2.AsyncClient, path: str, body: bytes | None = None) -> Any:
    if body is None:
        response = await client.get(path)
    else:
        response = await client.post(
            path, content=body, headers={"Content-Type": "application/json"}
        )
    response.raise_for_status()
    return response.json()


def _build_request(method: str, path: str, key: str, body: bytes = b"") -> bytes:
    return requests.build_request(method, path, requests.build_bearer_header(key), body)
