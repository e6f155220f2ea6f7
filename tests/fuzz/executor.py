"""Executes a planned request: fills in records, signs, sends, and checks the response."""

from collections.abc import Iterable
from typing import Any

import httpx2
import requests

from fuzz.callers import Caller, Callers
from fuzz.connection_pool import ConnectionPool
from fuzz.findings import Finding, find_problems, format_curl, list_sent
from fuzz.fixtures import FuzzFixtures
from fuzz.openapi import AnyCase, Operation
from fuzz.plan import PlannedRequest
from fuzz.recipes.registry import RECIPES, Prerequisites, find_records
from fuzz.results import Results
from fuzz.values import (
    ABSENT,
    RequestSubjects,
    Values,
    build_common_values,
    build_path_values,
    fill_fields,
    pick_subjects,
)
from tapgate.http.api.access import ROLES_BY_LETTER
from tapgate.http.api.owner_access import OWNER_ROLES_BY_LETTER

#: Rules affect all requests, so changes to them are reverted immediately.
_SHARED_RULE_PATHS = (
    "/api/v1/fee-rules",
    "/api/v1/commission-rules",
    "/api/v1/compliance/rules",
    "/api/v1/account-rules",
)
_SAVED_REPLIES_PATH = "/api/v1/support/saved-replies"
_WEBHOOK_ENDPOINTS_PATH = "/api/v1/admin/webhook-endpoints"
_REQUEST_LOGS_PATH = "/api/v1/admin/request-logs"
_MAX_CURSORS = 200
#: How often an owner's request names an own record. The other requests name a foreign one.
_OWN_RECORD_SHARE = 0.5
#: How often a complete request has the documented example as its body.
_EXAMPLE_SHARE = 0.5


class Executor:
    def __init__(
        self,
        fixtures: FuzzFixtures,
        connections: dict[str, ConnectionPool],
        results: Results,
        secrets: Iterable[str],
        callers: Callers,
    ) -> None:
        self._fixtures = fixtures
        self._connections = connections
        self._results = results
        self._secrets = list(secrets)
        self._callers = callers
        self._sent_by_owners: set[str] = set()

    async def execute(self, planned: PlannedRequest) -> None:
        operation, case = planned.operation, planned.copy_case()
        caller, content = await self._complete_case(planned, case)
        request = self._build_request(operation, case, content)
        if request is None:
            self._results.record_unsendable(operation.label)
            return
        caller.sign(request)
        if caller.is_owner:
            self._sent_by_owners |= list_sent(request, self._fixtures.canaries)
        response = await self._connections[operation.service].send(request)
        self._results.record_response(operation.label, caller.name, response)
        problems = [*find_problems(operation, case, request, response, self._secrets)]
        if caller.is_owner:
            problems += self._find_foreign_data(operation, request, response)
        for problem in problems:
            self._results.add_finding(
                Finding(
                    operation.label,
                    caller.name,
                    problem,
                    format_curl(request),
                    f"{response.status_code} {response.text[:500]}",
                )
            )
        await self._clean_up(operation, response)

    def _find_foreign_data(
        self, operation: Operation, request: httpx2.Request, response: httpx2.Response
    ) -> list[str]:
        """Return problems with texts that the owner may not receive and did not send.

        The request log has the texts of the owner's earlier requests. A public response, such as a
        statement's, is for everyone who has the link.
        """
        if not operation.spec.get("security"):
            return []
        is_log = operation.path.startswith(_REQUEST_LOGS_PATH)
        sent = self._sent_by_owners if is_log else list_sent(request, self._fixtures.canaries)
        received = response.text + str(response.headers)
        found = [text for text in self._fixtures.canaries - sent if text in received]
        return [f"foreign data in the response: {text}" for text in found]

    async def _complete_case(
        self, planned: PlannedRequest, case: AnyCase
    ) -> tuple[Caller, tuple[bytes, str] | None]:
        """Return the caller, and the content that replaces the generated body, if any."""
        operation, rng = planned.operation, planned.rng
        allowed = self._callers.list_allowed(operation.spec, operation.path)
        is_allowed = planned.complete or rng.random() < 0.75
        caller = rng.choice(allowed if is_allowed else self._callers.all)
        if planned.complete and caller.is_owner:  # who would need own records
            caller = rng.choice(allowed)
        # 0: as generated, 0.7: with some existing records, 1: with all that success requires.
        chance = rng.random()
        is_complete = planned.complete or (chance > 0.55 and planned.positive)
        fill_probability = 1.0 if is_complete else 0.0 if chance < 0.1 else 0.7
        if fill_probability == 0.0 or (operation.path == "/api/v1/admin/logout" and chance < 0.5):
            return self._replace_needed_caller(operation, caller), None
        if is_complete and operation.example is not None and rng.random() < _EXAMPLE_SHARE:
            case.body = dict(operation.example)
        subjects = await pick_subjects(self._fixtures, rng)
        values = (
            build_common_values(subjects)
            | build_path_values(subjects, operation.path)
            | dict(caller.values)
        )
        prerequisites = Prerequisites()
        parts = {name: item for name, item in values.items() if item is not ABSENT}
        if is_complete or rng.random() < 0.4:
            prerequisites = await self._prepare(operation, subjects, caller, parts)
            if caller.is_owner and rng.random() < _OWN_RECORD_SHARE:
                own = {
                    name: caller.values.get(name, item) for name, item in prerequisites.body.items()
                }
                prerequisites.body.update(own)
        parts |= prerequisites.path
        own_id = caller.find_own_id(operation.path)
        if own_id is not None and rng.random() < _OWN_RECORD_SHARE:
            parts["id"] = own_id
        case.path_parameters = {
            name: parts.get(name, value) if rng.random() < max(fill_probability, 0.9) else value
            for name, value in case.path_parameters.items()
        }
        _fill_case(
            case,
            values,
            prerequisites,
            lambda _: rng.random() < fill_probability,
            is_complete=is_complete,
        )
        content = prerequisites.content if is_complete else None
        return prerequisites.caller or self._replace_needed_caller(operation, caller), content

    async def _prepare(
        self, operation: Operation, subjects: RequestSubjects, caller: Caller, known: Values
    ) -> Prerequisites:
        """Prepare the operation's prerequisites; the request is sent even if preparation fails.

        Preparation can fail because of a concurrent request.
        """
        prerequisites = Prerequisites()
        try:
            if operation.name in RECIPES:
                prerequisites = await RECIPES[operation.name](subjects, caller)
            prerequisites.path = await find_records(
                subjects, operation.path, known | prerequisites.path
            )
        except AssertionError as error:
            self._results.record_unprepared(operation.label, str(error))
        return prerequisites

    def _replace_needed_caller(self, operation: Operation, caller: Caller) -> Caller:
        """Replace a shared admin with the anonymous caller if the operation would log it out."""
        is_logout = operation.path == "/api/v1/admin/logout" and caller.name in _ADMIN_CALLERS
        return self._fixtures.callers.by_name["anonymous"] if is_logout else caller

    def _build_request(
        self, operation: Operation, case: AnyCase, content: tuple[bytes, str] | None
    ) -> httpx2.Request | None:
        """Build the request, or return None if no client could send it."""
        address = self._connections[operation.service].address
        try:
            kwargs = case.as_transport_kwargs(base_url=address)
            created = requests.Request(**_filter_request_arguments(kwargs)).prepare()
            headers = {
                name: value.decode("latin-1") if isinstance(value, bytes) else value
                for name, value in created.headers.items()
            }
            body = created.body.encode() if isinstance(created.body, str) else created.body or b""
            assert isinstance(body, bytes)
            if content is not None:
                body, headers["Content-Type"] = content
            headers.pop("Content-Length", None)
            return httpx2.Request(
                operation.method,
                str(created.url),
                headers=[
                    (name.encode("latin-1"), value.encode("latin-1"))
                    for name, value in headers.items()
                ],
                content=body,
            )
        except (ValueError, httpx2.InvalidURL, requests.RequestException):
            return None

    async def _clean_up(self, operation: Operation, response: httpx2.Response) -> None:
        if not response.is_success:
            return
        if operation.method != "GET" and operation.path.startswith(_SHARED_RULE_PATHS):
            await self._fixtures.restore_rules()
        # Otherwise every event would be delivered to hundreds of endpoints, and the limit of saved
        # replies would be reached.
        for path in (_WEBHOOK_ENDPOINTS_PATH, _SAVED_REPLIES_PATH):
            if operation.name == f"POST {path}":
                await self._fixtures.admin.client.delete(
                    f"{path}/{response.json()['id']}", auth=self._fixtures.admin.auth
                )
        is_json = response.headers.get("content-type") == "application/json"  # not CSV
        if is_json and operation.operation_id.startswith("list_"):
            cursor = response.json().get("next_cursor")
            if cursor and len(self._fixtures.cursors) < _MAX_CURSORS:
                self._fixtures.cursors.append(cursor)


_ADMIN_CALLERS = (*ROLES_BY_LETTER.values(), *OWNER_ROLES_BY_LETTER.values())


def _fill_case(
    case: AnyCase, values: Values, prerequisites: Prerequisites, wanted: Any, *, is_complete: bool
) -> None:
    for part in ("query", "headers", "body"):
        container = getattr(case, part)
        if isinstance(container, dict):
            changed = dict(container)
            fill_fields(changed, values | prerequisites.body | prerequisites.query, wanted)
            added = {"query": prerequisites.query, "body": prerequisites.body}.get(part, {})
            if is_complete or wanted(""):
                changed |= {name: item for name, item in added.items() if item is not ABSENT}
            setattr(case, part, changed)


def _filter_request_arguments(kwargs: dict[str, Any]) -> dict[str, Any]:
    known = ("method", "url", "headers", "params", "json", "data", "files", "cookies")
    return {name: value for name, value in kwargs.items() if name in known}
