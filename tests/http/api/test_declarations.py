"""Contradictory declarations are rejected when they are made, before the first request."""

from collections.abc import Callable
from typing import Any

import pytest

from cases import each
from tapgate.http.api.access import Access
from tapgate.http.api.guards import Guard
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoints
from tapgate.http.router import Router
from tapgate.runtime.store.transaction import Transaction
from tapgate_client.schemas.common import SuccessResponse

_PUBLIC = Access(public=True)


def declare_access_without_callers() -> None:
    Access()


def declare_public_access_with_callers() -> None:
    Access(public=True, roles="A")


def declare_unknown_role() -> None:
    Access(roles="AX")


def declare_handler_without_its_path_parameter() -> None:
    @Endpoints("Test").get("/things/{id}", access=_PUBLIC)
    async def get_thing(request: RequestContext) -> SuccessResponse:
        return SuccessResponse(message="")


async def do_slow_work(request: RequestContext) -> str:
    return "done"


def declare_slow_work_without_a_transaction() -> None:
    @Endpoints("Test").get("/things", access=_PUBLIC, prepare=do_slow_work)
    async def get_thing(request: RequestContext) -> SuccessResponse:
        return SuccessResponse(message="")


def declare_prepared_value_without_slow_work() -> None:
    @Endpoints("Test").get("/things", access=_PUBLIC)
    async def get_thing(request: RequestContext, tx: Transaction, prepared: str) -> SuccessResponse:
        return SuccessResponse(message=prepared)


async def describe(request: RequestContext) -> None:
    """Describe a request that approval rules never guard."""


def declare_guarded_handler_that_needs_http() -> None:
    @Endpoints("Test").post("/things", access=_PUBLIC, guard=Guard(describe))
    async def create_thing(request: RequestContext, tx: Transaction) -> SuccessResponse:
        return SuccessResponse(message=request.method)


def declare_route_twice() -> None:
    router: Router[Any] = Router()
    router.add("GET", "/things/{id}", 1)
    router.add("GET", "/things/{name}", 2)


@each(
    "declare",
    [
        declare_access_without_callers,
        declare_public_access_with_callers,
        declare_unknown_role,
        declare_handler_without_its_path_parameter,
        declare_slow_work_without_a_transaction,
        declare_prepared_value_without_slow_work,
        declare_guarded_handler_that_needs_http,
        declare_route_twice,
    ],
)
def test_contradictory_declaration_is_rejected(declare: Callable[[], None]) -> None:
    with pytest.raises(TypeError):
        declare()
