"""Cross-origin requests from browser apps (CORS), limited to the origins that the operator lists.

Callers authenticate with headers, never with cookies, so responses do not allow credentials.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from tapgate.http.http_messages import SECURITY_HEADERS, Request, Response, encode_headers

_REQUEST_HEADERS: Final = (
    "Approval-Reason, Authorization, Content-Type, Idempotency-Key, If-None-Match, X-API-Key-ID, "
    "X-Partner-ID, X-Request-ID, X-Signature, X-Timestamp"
)
_RESPONSE_HEADERS: Final = (
    "Content-Disposition, ETag, Idempotent-Replayed, Location, Retry-After, X-Masked, "
    "X-Next-Cursor, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-ID"
)
#: How long browsers may cache the response to a preflight request.
_MAX_AGE_SECONDS: Final = 600
_OTHER_ORIGIN: Final = b"vary: Origin\r\n"


class CorsPolicy:
    """Headers for requests from listed origins. The whole origin must match exactly."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._headers = {
            origin.encode(): encode_headers(
                {
                    "Access-Control-Allow-Origin": origin,
                    "Access-Control-Expose-Headers": _RESPONSE_HEADERS,
                }
            )
            + _OTHER_ORIGIN
            for origin in origins
        }

    def get_headers(self, headers: Mapping[bytes, bytes]) -> bytes:
        """Return a response's header lines."""
        return self._headers.get(headers.get(b"origin", b""), _OTHER_ORIGIN)

    def build_preflight_response(self, request: Request, methods: Iterable[str]) -> Response | None:
        """Return the response to a preflight request from a listed origin, or None."""
        headers = request.headers
        is_preflight = b"access-control-request-method" in headers and request.method == "OPTIONS"
        if not is_preflight or headers.get(b"origin") not in self._headers:
            return None
        head = {
            **SECURITY_HEADERS,
            "Access-Control-Allow-Methods": ", ".join(sorted(methods)),
            "Access-Control-Allow-Headers": _REQUEST_HEADERS,
            "Access-Control-Max-Age": str(_MAX_AGE_SECONDS),
        }
        return Response(204, encode_headers(head), b"")
