"""Gateway routes, with their access checks."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec

from tapgate.auth.principals import Principal
from tapgate.auth.second_factors import SSO_METHOD, STEP_UP_LIFETIME, build_otp_required_error
from tapgate.http.api.access import Access, require_field_access
from tapgate.http.api.guards import describe, run_in_transaction
from tapgate.http.api.idempotency import require_consistent_idempotency_key
from tapgate.http.api.owner_access import bind, get_rejection
from tapgate.http.api.request_context import RequestContext
from tapgate.http.endpoint import Endpoint
from tapgate.http.route import Route, open_transaction
from tapgate.runtime.client_addresses import get_address_key
from tapgate_client.errors import ApiError, Code


class GuardedRoute(Route):
    """Gateway route, with its access checks and the limit on expensive reads."""

    def __init__(
        self, endpoint: Endpoint, currency: str, row: int, *, ignores_overload: bool
    ) -> None:
        if endpoint.moves_money:
            requires = (require_consistent_idempotency_key, *endpoint.requires)
            endpoint = msgspec.structs.replace(endpoint, requires=requires)
        super().__init__(endpoint, currency, row, ignores_overload=ignores_overload)
        if endpoint.takes_tx and endpoint.guard is not None:
            self._handler = open_transaction(endpoint, run_in_transaction)
        self._field_access: Mapping[str, Access] = endpoint.field_access
        self._heavy = endpoint.heavy
        self._step_up = endpoint.step_up
        self._enrolls = endpoint.enrolls

    def get_rejection(self, principal: Principal, field: str | None = None) -> ApiError | None:
        """Return why a principal may not call the endpoint or send one of its fields, or None."""
        error = get_rejection(self.endpoint, principal)
        if error is None and principal.enroll_only and not self._enrolls:
            return ApiError(
                Code.FORBIDDEN,
                "Enroll a second factor, then log in again.",
                details={"required": ["second_factor"]},
            )
        if error is None and field is not None and field in self._field_access:
            return self._field_access[field].get_rejection(principal)
        return error

    async def run(self, request: RequestContext, parameters: list[str]) -> Any:
        """Check access to fields, decode the arguments and run the handler."""
        if self._step_up is True and not _is_verified(request, enrolls=self._enrolls):
            raise await _build_step_up_error(request, enrolls=self._enrolls)
        if self._field_access:
            require_field_access(self._field_access, request.principal, _peek_fields(request.body))
        arguments = self._decode_arguments(request, parameters)
        view = request.owner_view
        if view is not None:
            await bind(self.endpoint, request.services.database, view, arguments)
        if self._field_access:
            # Check the decoded body too: its decoder accepts JSON that `_peek_fields` rejects.
            fields = msgspec.structs.asdict(arguments["body"])
            require_field_access(self._field_access, request.principal, fields)
        if (
            isinstance(self._step_up, tuple)
            and not _is_verified(request)
            and await describe(self.endpoint, request, arguments) is not None
        ):
            raise await _build_step_up_error(request)
        if self.is_report and request.services.report_client is not None:
            return await request.services.report_client.call(request, request.caller)
        if self.endpoint.guard is not None:
            handle = partial(self._handler, request, **arguments)
            return await request.services.run_guarded(self.endpoint, request, arguments, handle)
        if not self._is_heavy(arguments.get("query")):
            return await self._handler(request, **arguments)
        caller = request.caller
        group = get_address_key(request.ip) if caller is None else caller.idempotency_scope
        async with request.services.heavy_read_limit.slot(group):
            return await self._handler(request, **arguments)

    def _is_heavy(self, query: Any) -> bool:
        if isinstance(self._heavy, str):
            return getattr(query, self._heavy) is not None
        return self._heavy


def _is_verified(request: RequestContext, *, enrolls: bool = False) -> bool:
    """Return whether the caller needs no verification, or was verified recently.

    To enroll the first factor, a single sign-on admin needs only a recent sign-in: some
    providers cannot ask for the credentials again.
    """
    caller = request.caller
    if caller is None or not caller.needs_step_up:
        return True
    times = [caller.factor_at]
    if enrolls and not caller.has_factor:
        times.append(caller.signed_in_at)
    now = request.services.clock()
    return any(time is not None and now - time <= STEP_UP_LIFETIME for time in times)


async def _build_step_up_error(request: RequestContext, *, enrolls: bool = False) -> ApiError:
    admin_id, _ = request.admin_and_session_ids
    factors = await request.services.authenticator.factors.list_enrolled(admin_id)
    if factors:
        message = "Verify your second factor in your account, then try again."
        return build_otp_required_error(factors, message)
    if enrolls:
        message = "Sign in again, then enroll a second factor within 15 minutes."
    else:
        message = (
            "Sign in again at your identity provider, or enroll a second factor in your account."
        )
    return build_otp_required_error([SSO_METHOD], message)


def _peek_fields(body: bytes) -> Mapping[str, Any]:
    """Return a body's fields before validation, or {} if it is not a JSON object.

    Field access is checked on these fields first, so that a caller without access to a field learns
    nothing about its valid values.
    """
    try:
        fields = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}
