"""One planned request, completed with what really exists, signed, sent and looked at."""

from collections.abc import Iterable
from typing import Any

import httpx2
import requests

from fuzz.callers import Caller
from fuzz.description import AnyCase, Operation
from fuzz.findings import Finding, as_curl, problems
from fuzz.line_pool import Lines
from fuzz.plan import Planned
from fuzz.recipes.book import RECIPES, Ready
from fuzz.stock import Stock
from fuzz.tally import Tally
from fuzz.values import ABSENT, Company, Values, at, company, fill, usual

#: Rules are for everybody, so what changed them is undone at once.
_FOR_EVERYBODY = (
    "/api/v1/fee-rules",
    "/api/v1/commission-rules",
    "/api/v1/compliance/rules",
    "/api/v1/account-rules",
)
_ENDPOINTS = "/api/v1/admin/webhook-endpoints"
_MOST_CURSORS = 200


class Asker:
    def __init__(
        self, stock: Stock, lines: dict[str, Lines], tally: Tally, secrets: Iterable[str]
    ) -> None:
        self._stock = stock
        self._lines = lines
        self._tally = tally
        self._secrets = list(secrets)

    async def ask(self, planned: Planned) -> None:
        operation, case = planned.operation, planned.copied()
        caller, content = await self._completed(planned, case)
        request = self._request(operation, case, content)
        if request is None:
            self._tally.unsendable(operation.label)
            return
        caller.sign(request)
        answer = await self._lines[operation.service].send(request)
        self._tally.count(operation.label, caller.name, answer.status_code)
        for problem in problems(operation, case, request, answer, self._secrets):
            self._tally.find(
                Finding(
                    operation.label,
                    caller.name,
                    problem,
                    as_curl(request),
                    f"{answer.status_code} {answer.text[:500]}",
                )
            )
        await self._afterwards(operation, answer)

    async def _completed(
        self, planned: Planned, case: AnyCase
    ) -> tuple[Caller, tuple[bytes, str] | None]:
        """Who calls, and what is sent in the place of the generated body, if anything is."""
        operation, rng = planned.operation, planned.rng
        let_in = self._stock.callers.let_in(operation.described, operation.path)
        caller = rng.choice(let_in if rng.random() < 0.75 else self._stock.callers.all)
        # As generated; or with what exists; or with all that it takes to succeed.
        chance = rng.random()
        real = 0.0 if chance < 0.1 else 1.0 if chance > 0.55 and planned.positive else 0.7
        if real == 0.0 or (operation.path == "/api/v1/admin/logout" and chance < 0.5):
            return self._harmless(operation, caller), None
        here = await company(self._stock, rng)
        ready = Ready()
        if real == 1.0 or rng.random() < 0.4:
            ready = await self._prepared(operation, here, caller)
        values = usual(here) | at(here, operation.path) | dict(caller.values)
        parts = values | ready.path
        case.path_parameters = {
            name: parts.get(name, value) if rng.random() < max(real, 0.9) else value
            for name, value in case.path_parameters.items()
        }
        _put(case, values, ready, lambda _: rng.random() < real, certain=real == 1.0)
        content = ready.content if real == 1.0 else None
        return ready.caller or self._harmless(operation, caller), content

    async def _prepared(self, operation: Operation, here: Company, caller: Caller) -> Ready:
        """What could not be prepared is asked for all the same: another request was in the way."""
        if operation.name not in RECIPES:
            return Ready()
        try:
            return await RECIPES[operation.name](here, caller)
        except AssertionError as error:
            self._tally.unprepared(operation.label, str(error))
            return Ready()

    def _harmless(self, operation: Operation, caller: Caller) -> Caller:
        """Nobody who is still needed logs out."""
        leaving = operation.path == "/api/v1/admin/logout" and caller.name in _ADMINS
        return self._stock.callers.by_name["nobody"] if leaving else caller

    def _request(
        self, operation: Operation, case: AnyCase, content: tuple[bytes, str] | None
    ) -> httpx2.Request | None:
        """None for what no client could send, such as a header with a line end in it."""
        address = self._lines[operation.service].address
        try:
            kwargs = case.as_transport_kwargs(base_url=address)
            made = requests.Request(**_sendable(kwargs)).prepare()
            headers = {
                name: value.decode("latin-1") if isinstance(value, bytes) else value
                for name, value in made.headers.items()
            }
            body = made.body.encode() if isinstance(made.body, str) else made.body or b""
            assert isinstance(body, bytes)
            if content is not None:
                body, headers["Content-Type"] = content
            headers.pop("Content-Length", None)
            return httpx2.Request(
                operation.method,
                str(made.url),
                headers=[
                    (name.encode("latin-1"), value.encode("latin-1"))
                    for name, value in headers.items()
                ],
                content=body,
            )
        except (ValueError, httpx2.InvalidURL, requests.RequestException):
            return None

    async def _afterwards(self, operation: Operation, answer: httpx2.Response) -> None:
        if not answer.is_success:
            return
        if operation.method != "GET" and operation.path.startswith(_FOR_EVERYBODY):
            await self._stock.restore_rules()
        if operation.name == f"POST {_ENDPOINTS}":
            # Else every event would be sent to hundreds.
            made = answer.json()["id"]
            await self._stock.ada.client.delete(f"{_ENDPOINTS}/{made}", auth=self._stock.ada.auth)
        if operation.described.get("operationId", "").startswith("list_"):
            cursor = answer.json().get("next_cursor")
            if cursor and len(self._stock.cursors) < _MOST_CURSORS:
                self._stock.cursors.append(cursor)


_ADMINS = ("system_admin", "compliance_user", "support_user", "finance_user")


def _put(case: AnyCase, values: Values, ready: Ready, wanted: Any, *, certain: bool) -> None:
    for place in ("query", "headers", "body"):
        container = getattr(case, place)
        if isinstance(container, dict):
            changed = dict(container)
            fill(changed, values | ready.body, wanted)
            if place == "body" and (certain or wanted("")):
                changed |= {name: one for name, one in ready.body.items() if one is not ABSENT}
            setattr(case, place, changed)


def _sendable(kwargs: dict[str, Any]) -> dict[str, Any]:
    known = ("method", "url", "headers", "params", "json", "data", "files", "cookies")
    return {name: value for name, value in kwargs.items() if name in known}
