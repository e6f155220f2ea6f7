"""What the provider's form client asks, and what it is answered.

200 with the next screen; 421 for what cannot be decrypted, also when no key is set; 427 for a form
that cannot be used any more, which closes it; 400 for an action that is none; 503 while the form
cannot be looked up. All but 421 are encrypted. What is entered is handed on, and neither kept nor
logged nor repeated.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

import structlog

from tapgate.clock import Clock
from tapgate.errors import ApiError
from tapgate.messenger.flows import forms, screens
from tapgate.messenger.flows.cipher import DecryptionError, FlowKey
from tapgate.messenger.flows.forms import Form
from tapgate.messenger.model.common import Language
from tapgate.messenger.model.events import FormSubmitted
from tapgate.store.database import Database

FlowResponse = tuple[int, dict[str, Any]]

#: What a client reports is in its own hands: a word is logged, nothing that could be a PIN.
_WORD_PATTERN = re.compile(r"[A-Za-z_-]{1,60}")

_log = structlog.get_logger()


class FlowServices(Protocol):
    @property
    def database(self) -> Database: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def flow_key(self) -> FlowKey | None: ...


class FormResult(Protocol):
    """What became of what was entered. Not finished: `text` says why, and the form stays."""

    @property
    def finished(self) -> bool: ...
    @property
    def text(self) -> str: ...


S = TypeVar("S", bound=FlowServices)
#: None: the form was used meanwhile.
SubmitForm = Callable[[S, Form, FormSubmitted], Awaitable[FormResult | None]]


async def handle(services: S, body: bytes, enter: SubmitForm[S]) -> tuple[int, str]:
    """Status and text of the answer."""
    if services.flow_key is None:
        return DecryptionError.status, ""
    try:
        opened = services.flow_key.decrypt(body)
    except DecryptionError as no:
        return no.status, ""
    status, answer = await _respond(services, opened.request, enter)
    return status, opened.encrypt_response(answer)


async def _respond(services: S, request: dict[str, Any], enter: SubmitForm[S]) -> FlowResponse:
    action, data, token = request.get("action"), request.get("data"), request.get("flow_token")
    data = data if isinstance(data, dict) else {}
    if action == "ping":
        return 200, {"data": {"status": "active"}}
    if "error" in data:
        _log.warning("flows.client_error", error=_sanitize_word(data["error"]))
        return 200, {"data": {"acknowledged": True}}
    if action not in ("INIT", "BACK", "data_exchange"):
        return 400, {"error_msg": screens.get_error_text(None, "try_again")}
    entering = data if action == "data_exchange" else None
    return await _handle_form_action(
        services, token if isinstance(token, str) else "", entering, enter
    )


async def _handle_form_action(
    services: S, token: str, entering: dict[str, Any] | None, enter: SubmitForm[S]
) -> FlowResponse:
    try:
        form, language = await _find_form(services, token)
    except ApiError:
        return 503, {"error_msg": screens.get_error_text(None, "try_again")}
    if form is None:
        return _build_expired(language)
    if entering is None:
        return 200, screens.render_screen(form)
    return await _handle_submission(services, form, token, entering, enter)


async def _find_form(services: FlowServices, token: str) -> tuple[Form | None, Language | None]:
    async with services.database.connection() as connection:
        form = await forms.find(connection, token, services.clock())
        if form is not None:
            return form, form.language
        return None, await forms.get_language(connection, token)


async def _handle_submission(
    services: S, form: Form, token: str, data: dict[str, Any], enter: SubmitForm[S]
) -> FlowResponse:
    entered = screens.parse_submission(form, data)
    if not isinstance(entered, FormSubmitted):
        return 200, screens.render_screen(form, screens.get_error_text(form.language, entered))
    try:
        entry = await enter(services, form, entered)
    except Exception:
        # Whatever it is: the form stays, and the operation's id sees to it that it happens once.
        _log.exception("flows.submission_failed", form=form.form)
        return 200, screens.render_screen(form, screens.get_error_text(form.language, "try_again"))
    if entry is None:
        return _build_expired(form.language)
    if not entry.finished:
        text = entry.text or screens.get_error_text(form.language, "try_again")
        return 200, screens.render_screen(form, text)
    return 200, _build_success(token)


def _build_success(token: str) -> dict[str, Any]:
    """Ends the flow. These parameters come back through the chat, so they hold no secret: the token
    has just been used."""
    params = {"flow_token": token}
    return {"screen": "SUCCESS", "data": {"extension_message_response": {"params": params}}}


def _build_expired(language: Language | None) -> FlowResponse:
    return 427, {"error_msg": screens.get_error_text(language, "ended")}


def _sanitize_word(value: object) -> str:
    return value if isinstance(value, str) and _WORD_PATTERN.fullmatch(value) else "other"
