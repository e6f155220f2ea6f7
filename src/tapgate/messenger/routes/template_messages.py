"""Endpoints for template messages from internal services, and for reading the outbox."""

import re
from typing import Annotated, ClassVar, Final

import msgspec

from tapgate.core.message_templates import BUTTON_PATTERN
from tapgate.http.body_limits import KIBIBYTE
from tapgate.http.endpoint import Endpoints, Parameter, Reply
from tapgate.messenger.model import SecretStruct, Template
from tapgate.messenger.outbox.outbox_messages import OutboxMessage, enqueue, list_recent
from tapgate.messenger.routes.access import SERVICE
from tapgate.messenger.web import RequestContext, invalid, parse_phone, parse_query
from tapgate_client import ids
from tapgate_client.errors import ApiError, Code

endpoints = Endpoints("Messages")

MAX_PARAMETERS: Final = 20
MAX_PARAMETER_LENGTH: Final = 1024
MAX_KEY_LENGTH: Final = 64
MAX_LISTED_MESSAGES: Final = 100

_TEMPLATE_PATTERN: Final = r"[a-z0-9_]{1,64}"
_DEFAULT_LANGUAGE: Final = "en"
_LANGUAGE_PATTERN: Final = r"[a-z]{2,3}(_[A-Z]{2})?"
_KEY_PATTERN: Final = re.compile(rf"[!-~]{{1,{MAX_KEY_LENGTH}}}", re.ASCII)


class TemplateMessage(SecretStruct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {
        "to": "+23276123456",
        "template": "one_time_code",
        "language": "en",
        "parameters": ["123456"],
    }

    to: Annotated[str, msgspec.Meta(description="Phone number in E.164 format")]
    template: Annotated[str, msgspec.Meta(description="Lowercase letters, digits and `_`")]
    language: Annotated[
        str | None, msgspec.Meta(description="Language code, such as `en`, `fr` or `en_US`")
    ] = _DEFAULT_LANGUAGE
    parameters: list[str]
    button: Annotated[
        Annotated[str, msgspec.Meta(pattern=BUTTON_PATTERN)] | None,
        msgspec.Meta(
            description="Buttons below the message, such as `veto` for a phone change; `recall` and"
            " `dispute` name their record: `dispute:txn_01hq8v5k2m3n4`"
        ),
    ] = None


class TemplateMessageResponse(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {"message_id": ids.encode(ids.MESSAGE, 1 << 58)}

    message_id: str


class OutboxResponse(msgspec.Struct, frozen=True, kw_only=True):
    EXAMPLE: ClassVar = {
        "data": [
            {
                **TemplateMessage.EXAMPLE,
                "message_id": TemplateMessageResponse.EXAMPLE["message_id"],
                "status": "sent",
                "channel": "chat",
                "created_at": "2026-01-31T12:00:00.000Z",
            }
        ]
    }

    data: list[OutboxMessage]


@endpoints.post(
    "/api/v1/messages/template",
    access=SERVICE,
    status=202,
    body_limit=256 * KIBIBYTE,  # all parameters at their maximum length, escaped
    parameters=(
        Parameter(
            name="Idempotency-Key",
            location="header",
            description="Repeating a key sends nothing and returns the ID of the first message",
            required=False,
            schema={"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH},
        ),
    ),
    errors=(Code.VALIDATION_FAILED,),
)
async def send_template(
    request: RequestContext, body: TemplateMessage
) -> Reply[TemplateMessageResponse]:
    """Send a template message to a phone number.

    Returns 202 once the message is stored. If the service has used the `Idempotency-Key` in the
    last 7 days, nothing is sent, and the response contains the ID of the earlier message.
    """
    services = request.services
    to, template = _validate_body(body)
    key = _get_idempotency_key(request)
    async with services.database.transaction() as tx:
        message_id, is_new = await enqueue(tx, services, to, template, key=key)
    services.wake_sender()
    headers = {} if is_new else {"Idempotent-Replayed": "true"}
    return Reply(
        TemplateMessageResponse(message_id=ids.encode(ids.MESSAGE, message_id)), headers=headers
    )


@endpoints.get(
    "/api/v1/messages/outbox",
    access=SERVICE,
    parameters=(Parameter(name="to", description="Phone number in E.164 format"),),
    errors=(Code.INVALID_REQUEST, Code.VALIDATION_FAILED),
    in_production=False,
)
async def list_outbox_messages(request: RequestContext) -> OutboxResponse:
    """List the latest 100 outbox messages to a phone number, newest first.

    Lets tests and demos read one-time codes. Not available in production.
    """
    to = _parse_recipient(request.query)
    messages = await list_recent(
        request.services.database, request.services.vault, to, MAX_LISTED_MESSAGES
    )
    return OutboxResponse(data=messages)


def _validate_body(body: TemplateMessage) -> tuple[str, Template]:
    to = parse_phone(body.to, "to", code=Code.VALIDATION_FAILED)
    _require(
        re.fullmatch(_TEMPLATE_PATTERN, body.template),
        "template must be 1 to 64 lowercase letters, digits or underscores",
    )
    language = _DEFAULT_LANGUAGE if body.language is None else body.language
    _require(
        re.fullmatch(_LANGUAGE_PATTERN, language), "language must be a code such as en or en_US"
    )
    _require(
        len(body.parameters) <= MAX_PARAMETERS,
        f"parameters must have at most {MAX_PARAMETERS} items",
    )
    _require(
        all(len(item) <= MAX_PARAMETER_LENGTH and "\0" not in item for item in body.parameters),
        f"each parameter must have at most {MAX_PARAMETER_LENGTH} characters and no NUL",
    )
    parameters = tuple(body.parameters)
    template = Template(
        name=body.template, language=language, parameters=parameters, button=body.button
    )
    return to, template


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ApiError(Code.VALIDATION_FAILED, message)


def _get_idempotency_key(request: RequestContext) -> str | None:
    """Return the idempotency key with the service name as prefix, or None if there is no key."""
    value = request.get_header(b"idempotency-key")
    if value is None:
        return None
    _require(
        _KEY_PATTERN.fullmatch(value),
        f"Idempotency-Key must be 1 to {MAX_KEY_LENGTH} ASCII characters without spaces",
    )
    return f"{request.principal}:{value}"


def _parse_recipient(query: bytes) -> str:
    """Return the `to` parameter; a leading space is an unencoded `+`."""
    value = parse_query(query).get("to", "")
    if not value.strip():
        raise invalid("to is required")
    return parse_phone(f"+{value[1:]}" if value.startswith(" ") else value, "to")
