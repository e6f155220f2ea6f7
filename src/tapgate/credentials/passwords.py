"""Admin passwords: Argon2id, off the event loop, a few at a time."""

import base64
import os

import argon2

from tapgate.service.threads import Threads

#: OWASP's first choice for Argon2id: 19 MiB, two passes, one lane.
OWASP = argon2.Parameters(
    type=argon2.Type.ID,
    version=19,
    memory_cost=19 * 1024,
    time_cost=2,
    parallelism=1,
    salt_len=16,
    hash_len=32,
)

#: Half the processors, so that a flood of logins leaves the rest to payments.
_AT_ONCE = max(1, (os.cpu_count() or 1) // 2)
#: About two seconds' work. Whoever comes later is told so instead of being made to wait.
_MOST_WAITING = 32


class Passwords:
    def __init__(self, parameters: argon2.Parameters = OWASP) -> None:
        self._hasher = argon2.PasswordHasher.from_parameters(parameters)
        self._nobodys_hash = _unmatchable(parameters)
        self._threads = Threads("passwords", at_once=_AT_ONCE, most=_MOST_WAITING)

    async def hash(self, password: str) -> str:
        return await self._threads.run(self._hasher.hash, password)

    async def matches(self, stored: str | None, password: str) -> bool:
        """None stands for an account that is not there: the same work, then no."""
        return await self._threads.run(self._matches, stored or self._nobodys_hash, password)

    def is_outdated(self, stored: str) -> bool:
        """Made with other parameters than are used now."""
        return self._hasher.check_needs_rehash(stored)

    def _matches(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except argon2.exceptions.VerifyMismatchError:
            return False


def _unmatchable(parameters: argon2.Parameters) -> str:
    """A hash that takes as long as any to compare with, and that no password gives."""
    p = parameters
    salt, digest = (_base64(bytes(length)) for length in (p.salt_len, p.hash_len))
    costs = f"m={p.memory_cost},t={p.time_cost},p={p.parallelism}"
    return f"$argon2id$v={p.version}${costs}${salt}${digest}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")
