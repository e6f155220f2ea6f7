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
from tapgate.messenger.flows.cipher import CannotOpen, FlowKey
from tapgate.messenger.flows.forms import Form
from tapgate.messenger.model.events import Entered
from tapgate.messenger.model.kinds import Language
from tapgate.store.database import Database

Answer = tuple[int, dict[str, Any]]

#: What a client reports is in its own hands: a word is logged, nothing that could be a PIN.
_WORD = re.compile(r"[A-Za-z_-]{1,60}")

_log = structlog.get_logger()


class Services(Protocol):
    @property
    def database(self) -> Database: ...
    @property
    def clock(self) -> Clock: ...
    @property
    def flow_key(self) -> FlowKey | None: ...


class Entry(Protocol):
    """What became of what was entered. Not finished: `text` says why, and the form stays."""

    @property
    def finished(self) -> bool: ...
    @property
    def text(self) -> str: ...


S = TypeVar("S", bound=Services)
#: None: the form was used meanwhile.
Enter = Callable[[S, Form, Entered], Awaitable[Entry | None]]


async def handle(services: S, body: bytes, enter: Enter[S]) -> tuple[int, str]:
    """Status and text of the answer."""
    if services.flow_key is None:
        return CannotOpen.status, ""
    try:
        opened = services.flow_key.open(body)
    except CannotOpen as no:
        return no.status, ""
    status, answer = await _answer(services, opened.request, enter)
    return status, opened.seal(answer)


async def _answer(services: S, request: dict[str, Any], enter: Enter[S]) -> Answer:
    action, data, token = request.get("action"), request.get("data"), request.get("flow_token")
    data = data if isinstance(data, dict) else {}
    if action == "ping":
        return 200, {"data": {"status": "active"}}
    if "error" in data:
        _log.warning("flows.client_error", error=_word(data["error"]))
        return 200, {"data": {"acknowledged": True}}
    if action not in ("INIT", "BACK", "data_exchange"):
        return 400, {"error_msg": screens.problem(None, "try_again")}
    entering = data if action == "data_exchange" else None
    return await _about_form(services, token if isinstance(token, str) else "", entering, enter)


async def _about_form(
    services: S, token: str, entering: dict[str, Any] | None, enter: Enter[S]
) -> Answer:
    try:
        form, language = await _find(services, token)
    except ApiError:
        return 503, {"error_msg": screens.problem(None, "try_again")}
    if form is None:
        return _ended(language)
    if entering is None:
        return 200, screens.shown(form)
    return await _submitted(services, form, token, entering, enter)


async def _find(services: Services, token: str) -> tuple[Form | None, Language | None]:
    async with services.database.connection() as connection:
        form = await forms.find(connection, token, services.clock())
        if form is not None:
            return form, form.language
        return None, await forms.language_of(connection, token)


async def _submitted(
    services: S, form: Form, token: str, data: dict[str, Any], enter: Enter[S]
) -> Answer:
    entered = screens.entered(form, data)
    if not isinstance(entered, Entered):
        return 200, screens.shown(form, screens.problem(form.language, entered))
    try:
        entry = await enter(services, form, entered)
    except Exception:
        # Whatever it is: the form stays, and the operation's id sees to it that it happens once.
        _log.exception("flows.not_entered", form=form.form)
        return 200, screens.shown(form, screens.problem(form.language, "try_again"))
    if entry is None:
        return _ended(form.language)
    if not entry.finished:
        text = entry.text or screens.problem(form.language, "try_again")
        return 200, screens.shown(form, text)
    return 200, _success(token)


def _success(token: str) -> dict[str, Any]:
    """Ends the flow. These parameters come back through the chat, so they hold no secret: the token
    has just been used."""
    params = {"flow_token": token}
    return {"screen": "SUCCESS", "data": {"extension_message_response": {"params": params}}}


def _ended(language: Language | None) -> Answer:
    return 427, {"error_msg": screens.problem(language, "ended")}


def _word(value: object) -> str:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else "other"
