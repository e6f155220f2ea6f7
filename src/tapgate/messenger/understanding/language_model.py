"""Intent resolution with an optional language model.

The model is called only for a text that is not a known phrase and cannot contain a PIN. It receives
the text with all digits masked and may only name one command, never yes or no. On any failure, the
intent that was resolved without the model applies.
"""

import asyncio
import re
from typing import Final

import httpx2
import msgspec
import structlog

from tapgate.messenger.model import COMMANDS, Command, Intent, Language
from tapgate.messenger.understanding import resolver
from tapgate.messenger.understanding.secret_detection import may_contain_pin
from tapgate.runtime.bounded_responses import read_body
from tapgate_client.tls import get_tls_context_for

MODEL_TIMEOUT_SECONDS: Final = 3.0
#: Commands that the model may not name, because they confirm or refuse an operation.
_EXCLUDED_COMMANDS: Final = frozenset({"yes", "no"})
_ALLOWED_COMMANDS: Final = tuple(
    command for command in COMMANDS if command not in _EXCLUDED_COMMANDS
)
_MAX_TEXT_LENGTH: Final = 1000
_MAX_RESPONSE_BYTES: Final = 4096
_DIGIT_PATTERN = re.compile(r"[\d\u2070-\u209c\u2460-\u24ff\u2776-\u2793\u00b2\u00b3\u00b9]")

_log = structlog.get_logger()


class _InvalidResponseError(Exception):
    """The model's response is an error, too large or not a command. Its content is never logged."""


class _ModelResponse(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: Command


class IntentService:
    """Resolves intents with the language model at a URL, or without one if no URL is given."""

    def __init__(
        self, model_url: str | None, *, timeout_seconds: float = MODEL_TIMEOUT_SECONDS
    ) -> None:
        self._url = model_url or ""
        self._timeout = timeout_seconds
        self._client = (
            httpx2.AsyncClient(
                timeout=timeout_seconds, trust_env=False, verify=get_tls_context_for(model_url)
            )
            if model_url
            else None
        )

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def resolve_intent(self, text: str, language: Language | None) -> Intent:
        offline = resolver.resolve(text, language)
        is_known = resolver.match_literal(text, language) is not None
        if self._client is None or is_known or may_contain_pin(text):
            return offline
        command = await self._classify(self._client, text, language)
        return offline if command is None else Intent(command=command, language=offline.language)

    async def _classify(
        self, client: httpx2.AsyncClient, text: str, language: Language | None
    ) -> Command | None:
        payload = {
            "text": _DIGIT_PATTERN.sub("#", text[:_MAX_TEXT_LENGTH])
            .encode(errors="replace")
            .decode(),
            "language": language,
            "commands": _ALLOWED_COMMANDS,
        }
        try:
            async with asyncio.timeout(self._timeout):
                response = await self._request(client, msgspec.json.encode(payload))
        except (
            httpx2.HTTPError,
            httpx2.InvalidURL,
            TimeoutError,
            OSError,
            _InvalidResponseError,
        ) as error:
            _log.info("messenger.model_failed", problem=type(error).__name__)
            return None
        return None if response.command in _EXCLUDED_COMMANDS else response.command

    async def _request(self, client: httpx2.AsyncClient, payload: bytes) -> _ModelResponse:
        """Send the request and decode the response, or raise `_InvalidResponseError`."""
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        async with client.stream(
            "POST", self._url, content=payload, headers=headers, follow_redirects=False
        ) as response:
            if response.status_code != 200:
                raise _InvalidResponseError
            body = await read_body(response, _MAX_RESPONSE_BYTES)
        try:
            return msgspec.json.decode(body, type=_ModelResponse)
        except msgspec.MsgspecError:
            raise _InvalidResponseError from None
