"""Base class of all API callers in journeys.

`get`, `post` and `put` send one HTTP request and return the response. `require_success` returns
the body of a response that must succeed, and `require_error` the status and code of an error.
"""

import copy
import itertools
from typing import Any, Self

import httpx2

Record = dict[str, Any]

#: Makes names and numbers unique across journeys.
sequence = itertools.count(1)


def new_phone_number() -> str:
    return f"+232{77_000_000 + next(sequence)}"


def require_success(response: httpx2.Response) -> Record:
    assert response.is_success, (response.status_code, response.text)
    body: Record = response.json()
    return body


def require_error(response: httpx2.Response) -> tuple[int, str]:
    assert not response.is_success, response.text
    return response.status_code, response.json()["code"]


def require_error_details(response: httpx2.Response) -> Record:
    assert not response.is_success, response.text
    found: Record = response.json()["details"]
    return found


class ApiCaller:
    """A caller with a credential. Body fields that are None are omitted."""

    def __init__(self, client: httpx2.AsyncClient, auth: httpx2.Auth) -> None:
        self.client = client
        self.auth = auth

    def with_client(self, client: httpx2.AsyncClient) -> Self:
        """Return the same caller with another client."""
        other = copy.copy(self)
        other.client = client
        return other

    async def get(self, path: str, **query: Any) -> httpx2.Response:
        return await self.client.get(f"/api/v1/{path}", params=query, auth=self.auth)

    async def post(self, path: str, **body: Any) -> httpx2.Response:
        return await self.client.post(f"/api/v1/{path}", json=_drop_none(body), auth=self.auth)

    async def put(self, path: str, **body: Any) -> httpx2.Response:
        return await self.client.put(f"/api/v1/{path}", json=_drop_none(body), auth=self.auth)

    async def list_all(self, path: str, **query: Any) -> list[Record]:
        """Return all pages of a list, newest first."""
        found: list[Record] = []
        while True:
            page = require_success(await self.get(path, **query))
            found += page["data"]
            if not page["has_more"]:
                return found
            query["cursor"] = page["next_cursor"]

    async def list_transactions(self, user_id: str, **filters: Any) -> list[Record]:
        return await self.list_all("transactions", user_id=user_id, limit=100, **filters)

    async def get_balance(self, user_id: str) -> str:
        return str(require_success(await self.get(f"balance/{user_id}"))["balance"])


def _drop_none(body: Record) -> Record:
    return {name: value for name, value in body.items() if value is not None}
