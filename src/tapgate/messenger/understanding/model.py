"""The optional language model, and the front that asks it only where it may be asked.

It sees words without their digits and may name one command, nothing else: it never says yes or no,
and whatever goes wrong, what was understood without it stands.
"""

import asyncio
import re
from typing import Final

import httpx2
import msgspec
import structlog

from tapgate.messenger.model.events import Meaning
from tapgate.messenger.model.kinds import COMMANDS, Command, Language
from tapgate.messenger.understanding import resolver
from tapgate.messenger.understanding.secrets_in_text import may_hold_a_pin

PATIENCE_SECONDS: Final = 3.0
#: What a person alone may say.
_NEVER_ITS_WORD: Final = frozenset({"yes", "no"})
_NAMEABLE: Final = tuple(command for command in COMMANDS if command not in _NEVER_ITS_WORD)
_LONGEST_TEXT: Final = 1000
_LONGEST_ANSWER: Final = 4096
_DIGIT = re.compile(r"[\d\u2070-\u209c\u2460-\u24ff\u2776-\u2793\u00b2\u00b3\u00b9]")

_log = structlog.get_logger()


class _Unusable(Exception):  # noqa: N818
    """Answered, but not with a command. Says nothing of what was answered."""


class _Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    command: Command


class Model:
    """A model behind a URL."""

    def __init__(
        self,
        url: str,
        client: httpx2.AsyncClient,
        *,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self._url = url
        self._client = client
        self._patience = patience

    async def understand(self, text: str, language: Language | None) -> Meaning:
        known = resolver.literal(text, language)
        if known is not None:
            return known
        offline = resolver.resolve(text, language)
        if may_hold_a_pin(text):
            return offline
        command = await self._named(text, language)
        if command is None:
            return offline
        return Meaning(command=command, language=offline.language)

    async def _named(self, text: str, language: Language | None) -> Command | None:
        question = {
            "text": _DIGIT.sub("#", text[:_LONGEST_TEXT]).encode(errors="replace").decode(),
            "language": language,
            "commands": _NAMEABLE,
        }
        try:
            async with asyncio.timeout(self._patience):
                answer = await self._ask(msgspec.json.encode(question))
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError, _Unusable) as error:
            _log.info("messenger.model_failed", problem=type(error).__name__)
            return None
        return None if answer.command in _NEVER_ITS_WORD else answer.command

    async def _ask(self, question: bytes) -> _Answer:
        """Reads no more than an answer can be long."""
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        async with self._client.stream(
            "POST", self._url, content=question, headers=headers, follow_redirects=False
        ) as response:
            if response.status_code != 200:
                raise _Unusable
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > _LONGEST_ANSWER:
                    raise _Unusable
        return _read(bytes(body))


def _read(body: bytes) -> _Answer:
    try:
        return msgspec.json.decode(body, type=_Answer)
    except msgspec.MsgspecError:
        raise _Unusable from None


class Understanding:
    """What the messenger asks: the model where there is one, else the resolver alone."""

    def __init__(self, model_url: str | None, client: httpx2.AsyncClient | None = None) -> None:
        self._model: Model | None = None
        self._client = client
        self._owns = False
        if model_url is not None:
            if self._client is None:
                self._client = httpx2.AsyncClient(timeout=PATIENCE_SECONDS, trust_env=False)
                self._owns = True
            self._model = Model(model_url, self._client)

    async def understand(self, text: str, language: Language | None) -> Meaning:
        if self._model is None:
            return resolver.resolve(text, language)
        return await self._model.understand(text, language)

    async def close(self) -> None:
        if self._owns and self._client is not None:
            await self._client.aclose()
