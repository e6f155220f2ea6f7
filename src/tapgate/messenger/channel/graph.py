"""Client for the provider's Graph API: sends messages and downloads images sent by users.

The access token is sent to the configured URL and to the media URLs that the API returns, because
the provider serves media from other hosts. A media URL is as trusted as the configured URL, from
which it was received. The token is sent in clear text only if the configured URL itself uses HTTP;
a media URL with HTTP must then have the same host and port. Redirects are not followed, so the
token does not reach other hosts.
"""

import asyncio
import base64
import contextlib
import hashlib
import re
from collections.abc import Iterator
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2
import msgspec
import structlog

from tapgate.runtime.bounded_responses import ResponseTooLargeError, read_body
from tapgate_client.tls import get_tls_context

MAX_MEDIA_BYTES = 5 * 1024 * 1024

#: Total time for one request that sends a message.
SEND_TIMEOUT_SECONDS = 15.0
#: Total time to download an image.
_MEDIA_TIMEOUT_SECONDS = 60.0
_MAX_RESPONSE_BYTES = 256 * 1024

#: Overload, maintenance and rate limits (per person or in total); a retry may succeed.
_TRANSIENT_CODES = frozenset({1, 2, 4, 80007, 130429, 131000, 131016, 131056, 131057, 133004})
#: Configuration errors; once the operator corrects them, waiting messages can still be sent.
_MISCONFIGURED_CODES = frozenset({0, 3, 10, 190, 131005, 131031, 131042, 133010})
_PERMISSION_CODES = range(200, 300)
_NO_SUCH_OBJECT = (100, 33)
_MISCONFIGURED_STATUSES = frozenset({401, 403})
_TRANSIENT_STATUSES = frozenset({408, 425, 429})

#: Excludes a leading dot: `..` would change the path.
_MEDIA_ID_PATTERN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}", re.ASCII)
_log = structlog.get_logger()


class GraphError(Exception):
    """The message was not sent, or the outcome is unknown.

    `code` is the provider's error code, the HTTP status, or an exception's class name.
    """

    def __init__(self, code: str, *, is_retryable: bool, is_misconfigured: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.is_retryable = is_retryable
        self.is_misconfigured = is_misconfigured


class MediaError(Exception):
    """The image cannot be fetched. The reason completes "The picture ...".

    If `is_retryable` is set, a later attempt may succeed.
    """

    def __init__(self, reason: str, *, is_retryable: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_retryable = is_retryable


class _Response(msgspec.Struct, frozen=True):
    status: int
    content: bytes

    @property
    def fields(self) -> dict[str, Any]:
        try:
            fields = msgspec.json.decode(self.content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return {}
        return fields if isinstance(fields, dict) else {}


class GraphClient:
    """Client for one business phone number at the provider, used with `async with`."""

    def __init__(self, url: str, access_token: str, phone_number_id: str) -> None:
        self._url = url.rstrip("/")
        self._messages_url = f"{self._url}/{phone_number_id}/messages"
        # No compression: a small response could expand far beyond the size limit.
        self._headers = {"Authorization": f"Bearer {access_token}", "Accept-Encoding": "identity"}
        self._client = httpx2.AsyncClient(
            timeout=SEND_TIMEOUT_SECONDS,
            trust_env=False,
            follow_redirects=False,
            verify=get_tls_context(),
        )
        self._has_logged_misconfiguration = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.aclose()

    async def send(self, payload: dict[str, Any]) -> str:
        """Send a payload; return the provider's message ID, or "" if the response has none."""
        try:
            async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                response = await self._request("POST", self._messages_url, payload)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            raise GraphError(type(error).__name__, is_retryable=True) from None
        if 200 <= response.status < 300:
            self._has_logged_misconfiguration = False
            return _get_message_id(response.fields)
        failure = _build_error(response)
        if failure.is_misconfigured:
            self._log_misconfiguration(failure.code)
        raise failure

    async def fetch_media(
        self, media_id: str, limit: int = MAX_MEDIA_BYTES, *, sha256: str | None = None
    ) -> bytes:
        """Download an image; raise `MediaError` on failure, excess size or hash mismatch."""
        if _MEDIA_ID_PATTERN.fullmatch(media_id) is None:
            raise MediaError("was not found")
        with _map_media_errors():
            async with asyncio.timeout(_MEDIA_TIMEOUT_SECONDS):
                media_info = await self.get_media_info(media_id, limit)
                response = await self._request(
                    "GET", self._require_trusted_url(media_info.get("url")), limit=limit
                )
        if response.status != 200:
            raise _build_media_error(response.status)
        _require_hash(response.content, sha256, media_info.get("sha256"))
        return response.content

    async def get_media_info(self, media_id: str, limit: int) -> dict[str, Any]:
        response = await self._request("GET", f"{self._url}/{media_id}")
        if response.status != 200:
            raise _build_media_error(response.status)
        size = response.fields.get("file_size")
        if isinstance(size, int) and size > limit:
            raise ResponseTooLargeError("")
        return response.fields

    def _require_trusted_url(self, url: object) -> str:
        """Return the media URL if the access token may be sent there, else raise `MediaError`."""
        try:
            target, configured = urlsplit(url if isinstance(url, str) else ""), urlsplit(self._url)
            is_trusted = target.scheme == "https" or (
                target.scheme == configured.scheme == "http"
                and (target.hostname, target.port) == (configured.hostname, configured.port)
            )
        except ValueError:  # an invalid port or host
            is_trusted = False
        if not is_trusted or not target.hostname or "@" in target.netloc:
            raise MediaError("cannot be fetched from its URL")
        return str(url)

    async def _request(
        self,
        method: str,
        url: str,
        payload: dict[str, Any] | None = None,
        *,
        limit: int = _MAX_RESPONSE_BYTES,
    ) -> _Response:
        headers = dict(self._headers)
        content = None
        if payload is not None:
            headers["Content-Type"] = "application/json"
            content = msgspec.json.encode(payload)
        async with self._client.stream(method, url, headers=headers, content=content) as response:
            return _Response(response.status_code, await read_body(response, limit))

    def _log_misconfiguration(self, code: str) -> None:
        """Log a configuration error once, and again only after a successful send."""
        if not self._has_logged_misconfiguration:
            _log.error("graph.misconfigured", problem=code)
        self._has_logged_misconfiguration = True


def _get_message_id(fields: dict[str, Any]) -> str:
    match fields:
        case {"messages": [{"id": str(message_id)}, *_]}:
            return message_id[:500].replace("\0", "")
    return ""


def _build_error(response: _Response) -> GraphError:
    error_field = response.fields.get("error")
    error = error_field if isinstance(error_field, dict) else {}
    code = error.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        return _build_status_error(response.status)
    is_config_error = (
        code in _MISCONFIGURED_CODES
        or code in _PERMISSION_CODES
        or (code, error.get("error_subcode")) == _NO_SUCH_OBJECT
        or response.status in _MISCONFIGURED_STATUSES
    )
    can_retry = is_config_error or code in _TRANSIENT_CODES or response.status >= 500
    return GraphError(str(code), is_retryable=can_retry, is_misconfigured=is_config_error)


def _build_status_error(status: int) -> GraphError:
    """Return the error for a response without an error code, as from a proxy or a wrong URL."""
    is_config_error = status in _MISCONFIGURED_STATUSES or status < 400 or status == 404
    can_retry = is_config_error or status in _TRANSIENT_STATUSES or status >= 500
    return GraphError(f"status {status}", is_retryable=can_retry, is_misconfigured=is_config_error)


@contextlib.contextmanager
def _map_media_errors() -> Iterator[None]:
    try:
        yield
    except ResponseTooLargeError:
        raise MediaError("is too large") from None
    except (httpx2.HTTPError, TimeoutError):
        raise MediaError("could not be fetched", is_retryable=True) from None
    except httpx2.InvalidURL:
        raise MediaError("cannot be fetched from its URL") from None


def _build_media_error(status: int) -> MediaError:
    if status in _MISCONFIGURED_STATUSES or status in _TRANSIENT_STATUSES or status >= 500:
        return MediaError("could not be fetched", is_retryable=True)
    return MediaError("was not found")


def _require_hash(content: bytes, *expected_hashes: object) -> None:
    digest = hashlib.sha256(content).digest()
    for expected in expected_hashes:
        if isinstance(expected, str) and expected and _decode_digest(expected) != digest:
            raise MediaError("does not match its SHA-256 hash")


def _decode_digest(text: str) -> bytes:
    """Decode a digest in hex (media info) or base64 (message); return b"" if it is neither."""
    with contextlib.suppress(ValueError):
        if len(text) == 64:
            return bytes.fromhex(text)
        return base64.b64decode(text, validate=True)
    return b""
