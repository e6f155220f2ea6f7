"""What internal services send to people through the messenger, and what was sent."""

import re
from typing import Annotated, ClassVar, Final

import msgspec

from tapgate import ids
from tapgate.messenger.model.kinds import Secret
from tapgate.messenger.model.replies import Template
from tapgate.messenger.outbox.queries import OutboxMessage, recent
from tapgate.messenger.routes import reading
from tapgate.messenger.routes.route import Refusal, Request, json_answer
from tapgate.service.http import Response

MOST_PARAMETERS: Final = 20
LONGEST_PARAMETER: Final = 1024
LONGEST_KEY: Final = 64
#: How much of the outbox is shown.
SHOWN: Final = 100

_TEMPLATE: Final = r"[a-z0-9_]{1,64}"
_DEFAULT_LANGUAGE: Final = "en"
_LANGUAGE: Final = r"[a-z]{2,3}(_[A-Z]{2})?"
_KEY: Final = re.compile(rf"[!-~]{{1,{LONGEST_KEY}}}", re.ASCII)


class TemplateMessage(Secret, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {
        "to": "+23276123456",
        "template": "one_time_code",
        "language": "en",
        "parameters": ["123456"],
    }

    to: Annotated[str, msgspec.Meta(description="E.164")]
    template: Annotated[str, msgspec.Meta(description="Lower-case letters, digits and `_`")]
    language: Annotated[str | None, msgspec.Meta(description="Such as `en`, `fr` or `en_US`")] = (
        _DEFAULT_LANGUAGE
    )
    parameters: list[str]


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {"message_id": ids.encode(ids.MESSAGE, 1 << 58)}

    message_id: str


class Outbox(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {
        "data": [
            {
                **TemplateMessage.EXAMPLE,
                "message_id": Accepted.EXAMPLE["message_id"],
                "status": "sent",
                "created_at": "2026-01-31T12:00:00.000Z",
            }
        ]
    }

    data: list[OutboxMessage]


async def send_template(request: Request) -> Response:
    """Send a template message to a phone.

    Accepted once it is stored. A request with the `Idempotency-Key` of an earlier one sends
    nothing and answers the earlier message's id.
    """
    services, body = request.services, reading.read(TemplateMessage, request.body)
    to, template = _checked(body)
    key = _key(request)
    async with services.database.transaction() as tx:
        message_id, is_new = await services.put(tx, to, template, key=key)
    services.wake_sender()
    headers = {} if is_new else {"Idempotent-Replayed": "true"}
    return json_answer(202, Accepted(message_id=ids.encode(ids.MESSAGE, message_id)), headers)


async def list_outbox_messages(request: Request) -> Response:
    """Show what was sent to a phone, newest first, so that tests and demos can read a code.

    Not in production.
    """
    to = _asked_for(request.query)
    sent = await recent(request.services.database, request.services.vault, to, SHOWN)
    return json_answer(200, Outbox(data=sent))


def _checked(body: TemplateMessage) -> tuple[str, Template]:
    to = reading.phone(body.to, "to", status=422)
    _require(re.fullmatch(_TEMPLATE, body.template), "template is not the name of a template")
    language = _DEFAULT_LANGUAGE if body.language is None else body.language
    _require(re.fullmatch(_LANGUAGE, language), "language must be a code such as en or en_US")
    _require(
        len(body.parameters) <= MOST_PARAMETERS,
        f"parameters must have at most {MOST_PARAMETERS} items",
    )
    _require(
        all(len(one) <= LONGEST_PARAMETER and "\0" not in one for one in body.parameters),
        f"parameters must have at most {LONGEST_PARAMETER} characters each, and no NUL",
    )
    parameters = tuple(body.parameters)
    return to, Template(name=body.template, language=language, parameters=parameters)


def _require(condition: object, sentence: str) -> None:
    if not condition:
        raise Refusal(422, sentence)


def _key(request: Request) -> str | None:
    """Two services may use the same word for different messages."""
    given = request.header(b"idempotency-key")
    if given is None:
        return None
    _require(_KEY.fullmatch(given), f"Idempotency-Key must be 1 to {LONGEST_KEY} ASCII characters")
    return f"{request.principal}:{given}"


def _asked_for(query: bytes) -> str:
    """A `+` that was not encoded reads as a space, and is meant as what it is."""
    given = reading.query(query).get("to", "")
    if not given.strip():
        raise Refusal(400, "to is required")
    return reading.phone(f"+{given[1:]}" if given.startswith(" ") else given, "to")
