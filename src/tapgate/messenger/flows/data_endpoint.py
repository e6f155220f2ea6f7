"""Data endpoint that the provider's form client calls.

Response statuses:

- 200: a screen, the end of the flow, or an acknowledgment.
- 400: unknown action.
- 421: the request cannot be decrypted, or no key is configured.
- 427: the form can no longer be used. The client closes it.
- 503: the form cannot be loaded, because the database is unavailable.

All responses except 421 are encrypted. Submitted PINs are passed to `submit` and never stored,
logged or returned.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any

import structlog

from tapgate.messenger.flows import forms, screens
from tapgate.messenger.flows.cipher import DecryptionError
from tapgate.messenger.flows.forms import Form
from tapgate.messenger.model import FormSubmitted, Language
from tapgate.messenger.runner import FormResult
from tapgate.messenger.services import Services
from tapgate_client.errors import ApiError

FlowResponse = tuple[int, dict[str, Any]]

#: Client error reports are untrusted. Only a single word without digits is logged, never a PIN.
_WORD_PATTERN = re.compile(r"[A-Za-z_-]{1,60}")

_log = structlog.get_logger()

#: Processes a submission; returns None if the form can no longer be used.
SubmitForm = Callable[[Services, Form, FormSubmitted], Awaitable[FormResult | None]]


async def handle(services: Services, body: bytes, submit: SubmitForm) -> tuple[int, str]:
    """Return the response status and body."""
    if services.flow_key is None:
        return DecryptionError.status, ""
    try:
        decrypted = services.flow_key.decrypt(body)
    except DecryptionError as error:
        return error.status, ""
    status, response = await _respond(services, decrypted.request, submit)
    return status, decrypted.encrypt_response(response)


async def _respond(services: Services, request: dict[str, Any], submit: SubmitForm) -> FlowResponse:
    action, data, token = request.get("action"), request.get("data"), request.get("flow_token")
    data = data if isinstance(data, dict) else {}
    if action == "ping":
        return 200, {"data": {"status": "active"}}
    if "error" in data:
        _log.warning("flows.client_error", error=_sanitize_word(data["error"]))
        return 200, {"data": {"acknowledged": True}}
    if action not in ("INIT", "BACK", "data_exchange"):
        return 400, {"error_msg": screens.get_error_text(None, "try_again")}
    submitted = data if action == "data_exchange" else None
    return await _handle_form_action(
        services, token if isinstance(token, str) else "", submitted, submit
    )


async def _handle_form_action(
    services: Services, token: str, submitted: dict[str, Any] | None, submit: SubmitForm
) -> FlowResponse:
    try:
        form, language = await _find_form(services, token)
    except ApiError:
        return 503, {"error_msg": screens.get_error_text(None, "try_again")}
    if form is None:
        return _build_expired(language)
    if submitted is None:
        return 200, screens.render_screen(form)
    return await _handle_submission(services, form, token, submitted, submit)


async def _find_form(services: Services, token: str) -> tuple[Form | None, Language | None]:
    token_hash = forms.hash_token(token)
    async with services.database.connection() as connection:
        form = await forms.find(connection, token_hash, services.clock())
        if form is not None:
            return form, form.language
        return None, await forms.get_language(connection, token_hash)


async def _handle_submission(
    services: Services, form: Form, token: str, data: dict[str, Any], submit: SubmitForm
) -> FlowResponse:
    submission = screens.parse_submission(form, data)
    if not isinstance(submission, FormSubmitted):
        return 200, screens.render_screen(form, screens.get_error_text(form.language, submission))
    try:
        result = await submit(services, form, submission)
    except Exception:
        # Keep the form open, so that the person can retry. A transfer's idempotency key makes a
        # retry safe.
        _log.exception("flows.submission_failed", form=form.form)
        return 200, screens.render_screen(form, screens.get_error_text(form.language, "try_again"))
    if result is None:
        return _build_expired(form.language)
    if not result.finished:
        text = result.text or screens.get_error_text(form.language, "try_again")
        return 200, screens.render_screen(form, text)
    return 200, _build_success(token)


def _build_success(token: str) -> dict[str, Any]:
    """Build the response that ends the flow.

    The client sends the parameters back in a chat message, so they must not contain a secret. The
    token is no longer secret, because the form has been used.
    """
    params = {"flow_token": token}
    return {"screen": "SUCCESS", "data": {"extension_message_response": {"params": params}}}


def _build_expired(language: Language | None) -> FlowResponse:
    return 427, {"error_msg": screens.get_error_text(language, "expired")}


def _sanitize_word(value: object) -> str:
    return value if isinstance(value, str) and _WORD_PATTERN.fullmatch(value) else "other"
