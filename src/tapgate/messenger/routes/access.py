"""Authenticates bridges, the provider and internal services, by token or signature.

Secrets and signatures are compared in constant time.
"""

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tapgate.http.openapi import build_bearer_scheme, build_header_scheme
from tapgate.messenger.web import RequestContext, parse_query
from tapgate_client import signing
from tapgate_client.errors import ApiError, Code

Check = Callable[[RequestContext], str | None]

#: Used for an unknown service, so that its check takes the same time as for a known service.
_DUMMY_SECRET: Final = b"no such service"
#: Status by which the provider recognizes an invalid signature in a flow data exchange.
BAD_FLOW_SIGNATURE: Final = 432
_HUB_SIGNATURE_PATTERN: Final = re.compile(r"sha256=[0-9a-fA-F]{64}", re.ASCII)


@dataclass(frozen=True, kw_only=True)
class Access:
    """Endpoint access declaration.

    A check returns the principal, returns None for an anonymous caller, or raises `ApiError`.
    """

    #: Runs before the body is read. None only for public endpoints.
    check: Check | None
    #: Runs after the body is read, to check a signature over it.
    check_body: Check | None = None
    description: str
    #: Alternatives, each a set of OpenAPI security schemes that are required together.
    security: tuple[tuple[str, ...], ...] = ()
    error_statuses: tuple[int, ...] = ()

    @property
    def public(self) -> bool:
        return self.check is None


def is_equal_constant_time(value: str, expected: str) -> bool:
    return hmac.compare_digest(value.encode(errors="replace"), expected.encode())


def _check_bridge(request: RequestContext) -> str | None:
    settings = request.services.settings
    token = settings.messenger_bridge_token
    if token is None:
        if settings.is_production:
            raise _build_forbidden_error("TAPGATE_MESSENGER_BRIDGE_TOKEN must be set in production")
        return None
    _require_bearer_token(request, token, "the bridge token")
    return "bridge"


def _check_sms_provider(request: RequestContext) -> str:
    token = request.services.settings.sms_token
    if token is None:
        raise _build_forbidden_error("TAPGATE_SMS_TOKEN must be set")
    _require_bearer_token(request, token, "the SMS provider token")
    return "sms provider"


def _require_bearer_token(request: RequestContext, token: str, name: str) -> None:
    scheme, _, value = (request.get_header(b"authorization") or "").partition(" ")
    if scheme.lower() != "bearer" or not is_equal_constant_time(value.strip(), token):
        raise ApiError(
            Code.UNAUTHORIZED,
            f"Authorization must be Bearer followed by {name}",
            headers={"WWW-Authenticate": "Bearer"},
        )


def _build_channel_access(error_status: int, *error_statuses: int) -> Access:
    """Return the provider's access; its signature covers the body.

    A missing or malformed signature is rejected before the body is read. Without an app secret,
    every request is rejected in production and accepted otherwise.
    """

    def check_header(request: RequestContext) -> str | None:
        settings = request.services.settings
        if settings.messenger_app_secret is None:
            if settings.is_production:
                raise _build_forbidden_error(
                    "TAPGATE_MESSENGER_APP_SECRET must be set in production"
                )
            return None
        signature = request.get_header(b"x-hub-signature-256")
        if signature is None:
            raise _build_unauthorized_error("X-Hub-Signature-256 is missing", error_status)
        if _HUB_SIGNATURE_PATTERN.fullmatch(signature) is None:
            raise _build_unauthorized_error("X-Hub-Signature-256 is invalid", error_status)
        return None

    def check_body(request: RequestContext) -> str | None:
        secret = request.services.settings.messenger_app_secret
        if secret is None:
            return None
        signature = request.get_header(b"x-hub-signature-256") or ""
        if not signing.verify_webhook(secret.encode(), signature, request.body):
            raise _build_unauthorized_error("X-Hub-Signature-256 is invalid", error_status)
        return "channel"

    return Access(
        check=check_header,
        check_body=check_body,
        description=(
            "Access: the channel's provider, with a signature by TAPGATE_MESSENGER_APP_SECRET."
            " Outside production, any client if no secret is set."
        ),
        security=(("hubSignature",), ()),
        error_statuses=error_statuses,
    )


def _check_handshake(request: RequestContext) -> str | None:
    query = parse_query(request.query)
    expected = request.services.settings.messenger_verify_token
    is_valid_token = is_equal_constant_time(query.get("hub.verify_token", ""), expected)
    if not expected or not is_valid_token or query.get("hub.mode") != "subscribe":
        raise _build_forbidden_error("hub.mode or hub.verify_token is invalid")
    return "channel"


def _check_service(request: RequestContext) -> str | None:
    name = _require_header(request, "X-Service-Name")
    timestamp = _require_header(request, "X-Service-Timestamp")
    signature = _require_header(request, "X-Service-Signature")
    signed_at = signing.parse_unix_seconds(timestamp)
    if signed_at is None:
        raise _build_unauthorized_error("X-Service-Timestamp is malformed")
    if not signing.is_timely(signed_at, request.services.clock()):
        raise _build_unauthorized_error(
            "X-Service-Timestamp is more than 5 minutes from the server's time"
        )
    secret = request.services.settings.service_secrets.get(name)
    signed = signing.service_signed_string(request.method, request.path, request.query, timestamp)
    is_genuine = signing.verify(
        _DUMMY_SECRET if secret is None else secret.encode(), signature, signed
    )
    if secret is None or not is_genuine:
        raise _build_unauthorized_error("The service is unknown, or the signature is invalid")
    return name


def _require_header(request: RequestContext, name: str) -> str:
    value = request.get_header(name.lower().encode())
    if value is None:
        raise _build_unauthorized_error(f"{name} is missing")
    return value


def _build_forbidden_error(message: str) -> ApiError:
    return ApiError(Code.FORBIDDEN, message)


def _build_unauthorized_error(message: str, status: int = 401) -> ApiError:
    error = ApiError(Code.UNAUTHORIZED, message)
    error.status = status
    return error


_SERVICE_SECURITY: Final = ("serviceName", "serviceTime", "serviceSignature")

PUBLIC: Final = Access(check=None, description="Public.")
METRICS: Final = Access(
    check=None,
    description=(
        "Access: TAPGATE_METRICS_TOKEN as the bearer token. If no token is set, any client, and in"
        " staging and production none."
    ),
    security=(("metricsToken",), ()),
    error_statuses=(401, 404),
)
BRIDGE: Final = Access(
    check=_check_bridge,
    description=(
        "Access: a bridge with TAPGATE_MESSENGER_BRIDGE_TOKEN as its bearer token. Outside"
        " production, any client if no token is set."
    ),
    security=(("bridgeToken",), ()),
    error_statuses=(401, 403),
)
SMS_PROVIDER: Final = Access(
    check=_check_sms_provider,
    description="Access: the SMS provider with TAPGATE_SMS_TOKEN as its bearer token.",
    security=(("smsToken",),),
    error_statuses=(401, 403),
)
HANDSHAKE: Final = Access(
    check=_check_handshake,
    description="Access: the channel's provider, with TAPGATE_MESSENGER_VERIFY_TOKEN.",
    error_statuses=(403,),
)
CHANNEL: Final = _build_channel_access(401, 401, 403)
FLOW: Final = _build_channel_access(BAD_FLOW_SIGNATURE, 403, BAD_FLOW_SIGNATURE)
SERVICE: Final = Access(
    check=_check_service,
    description="Access: an internal service's signature.",
    security=(_SERVICE_SECURITY,),
    error_statuses=(401,),
)

SECURITY_SCHEMES: Final = {
    "bridgeToken": build_bearer_scheme("The value of TAPGATE_MESSENGER_BRIDGE_TOKEN"),
    "smsToken": build_bearer_scheme("The value of TAPGATE_SMS_TOKEN"),
    "metricsToken": build_bearer_scheme("The value of TAPGATE_METRICS_TOKEN"),
    "hubSignature": build_header_scheme(
        "X-Hub-Signature-256", "`sha256=` followed by the hex HMAC-SHA-256 of the raw body"
    ),
    "serviceName": build_header_scheme("X-Service-Name", "Name of the calling service"),
    "serviceTime": build_header_scheme(
        "X-Service-Timestamp", "Unix time in seconds, within 5 minutes of the server's time"
    ),
    "serviceSignature": build_header_scheme(
        "X-Service-Signature", "Hex HMAC-SHA-256 of METHOD|PATH|QUERY|TIMESTAMP"
    ),
}
