"""Prompts in place: a form asks for a factor, or for the reason of a request that needs approval.

The prompt is inserted into the form, so that nothing that was typed is lost. Submitting the form
again sends the factor or the reason with it.
"""

from typing import Final

import msgspec

from tapgate.auth.rate_limit_cost import NO_COST
from tapgate.http.api import approval_reason
from tapgate.http.endpoint import Reply
from tapgate.sites.console import session
from tapgate.sites.console.page_request import APPROVAL_REASON_FIELD, PageRequest
from tapgate_client.errors import ApiError, Code

_STEP_UP_PATH: Final = "/api/v1/admin/me/step-up"
_CODE_FIELD: Final = "step_up_code"
_PASSKEY_FIELD: Final = "step_up_passkey"
#: Form element into which the prompt is inserted.
_SLOT: Final = "find [data-step-up]"


def is_required(error: ApiError) -> bool:
    """Return whether an action failed because it needs a recently verified factor."""
    return error.code is Code.OTP_REQUIRED and "methods" in (error.details or {})


def is_answered_by_prompt(error: ApiError) -> bool:
    """Return whether the site answers an error, so that the form itself does not show it."""
    return (
        error.code is Code.UNAUTHORIZED or is_required(error) or approval_reason.is_missing(error)
    )


async def verify_submitted(request: PageRequest) -> None:
    """Verify the factor in a form, if it has one.

    If it is wrong, the action itself fails with `OTP_REQUIRED`, and the prompt shows the problem.
    """
    code, passkey = request.form.get(_CODE_FIELD), request.form.get(_PASSKEY_FIELD)
    if not code and not passkey:
        return
    body = {"passkey": parse_credential(passkey)} if passkey else {"otp": code}
    try:
        await request.send("POST", _STEP_UP_PATH, body)
    except ApiError as error:
        if error.code is Code.UNAUTHORIZED or error.status >= 500:
            raise
        request.step_up_problem = _format_problem(request, error)
    else:
        # The principal was loaded before the factor was verified.
        request.context.caller = await session.authenticate(request.context, NO_COST)


def render_prompt(request: PageRequest, error: ApiError) -> Reply[bytes]:
    reply = request.render(
        "step_up.html",
        methods=(error.details or {}).get("methods", []),
        problem=request.step_up_problem,
        code_field=_CODE_FIELD,
        passkey_field=_PASSKEY_FIELD,
        reason_field=APPROVAL_REASON_FIELD,
        reason=request.form.get(APPROVAL_REASON_FIELD),
    )
    return _insert(reply)


def render_reason_prompt(request: PageRequest, error: ApiError) -> Reply[bytes]:
    """Render the question for the reason of a request that waits for approval."""
    reply = request.render(
        "approvals/reason_prompt.html",
        name=APPROVAL_REASON_FIELD,
        reason=request.form.get(APPROVAL_REASON_FIELD),
        error=error,
    )
    return _insert(reply)


def _insert(reply: Reply[bytes]) -> Reply[bytes]:
    """Insert a prompt into the form that was submitted."""
    # Overrides the form's target, swap and selection.
    swap = {"HX-Retarget": _SLOT, "HX-Reswap": "innerHTML", "HX-Reselect": ".step-up"}
    reply.headers = {**reply.headers, **swap}
    return reply


def parse_credential(text: str | None) -> object:
    """Return the credential that a script has put into a form, or the text if it is not JSON."""
    try:
        return msgspec.json.decode(text or "")
    except (ValueError, RecursionError):
        return text


def _format_problem(request: PageRequest, error: ApiError) -> str:
    if error.code is Code.RATE_LIMITED:
        return request.translate("Too many attempts. Try again in a few minutes.")
    if error.code is Code.INVALID_OTP:
        return request.translator.translate_error(error)
    return request.translate("The code or passkey was not accepted. Try again.")
