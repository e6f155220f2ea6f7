"""Hashes admin passwords: Argon2id in a thread pool, shared fairly between addresses."""

import asyncio
import base64
import os
import secrets
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import argon2

from tapgate.runtime.fair_limit import FairLimit

T = TypeVar("T")

#: OWASP's minimum configuration for Argon2id: 19 MiB, two passes, one lane.
OWASP_PARAMETERS = argon2.Parameters(
    type=argon2.Type.ID,
    version=19,
    memory_cost=19 * 1024,
    time_cost=2,
    parallelism=1,
    salt_len=16,
    hash_len=32,
)

#: Per process: half of the CPUs, so that a login flood leaves CPUs for payments.
MAX_THREADS = max(1, (os.cpu_count() or 1) // 2)
#: Maximum number of tasks waiting for a thread. One thread completes 64 in about two seconds.
_MAX_WAITING = 64
MAX_WAITING_PER_ADDRESS = 8
_TIMEOUT_SECONDS = 10.0
#: Group for new admins' passwords, separate from the client address groups.
PLATFORM_GROUP = ""


class Passwords:
    def __init__(self, parameters: argon2.Parameters = OWASP_PARAMETERS) -> None:
        self._hasher = argon2.PasswordHasher.from_parameters(parameters)
        self._dummy_hash = _build_dummy_hash(parameters)
        self._executor = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="passwords")
        self._limit = FairLimit(
            "Too many passwords are being verified. Try again shortly.",
            slots=MAX_THREADS,
            slots_per_group=MAX_THREADS,
            queue=_MAX_WAITING,
            queue_per_group=MAX_WAITING_PER_ADDRESS,
            timeout=_TIMEOUT_SECONDS,
        )

    async def hash(self, password: str, address: str = PLATFORM_GROUP) -> str:
        return await self._run(address, self._hasher.hash, password)

    async def hash_unknown(self) -> str:
        """Hash a random password that is not kept, so that no password matches."""
        return await self.hash(secrets.token_urlsafe(32))

    async def matches(
        self, stored: str | None, password: str, address: str = PLATFORM_GROUP
    ) -> bool:
        """Return whether the password matches a stored hash.

        For an unknown account, pass None: the check takes equally long and returns False.
        """
        return await self._run(address, self._matches, stored or self._dummy_hash, password)

    async def _run(self, address: str, work: Callable[..., T], *arguments: object) -> T:
        async with self._limit.slot(address):
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._executor, work, *arguments)

    def is_outdated(self, stored: str) -> bool:
        """Return whether a hash was created with parameters other than the current ones."""
        return self._hasher.check_needs_rehash(stored)

    def _matches(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored, password)
        except (argon2.exceptions.VerifyMismatchError, argon2.exceptions.InvalidHashError):
            return False


def _build_dummy_hash(parameters: argon2.Parameters) -> str:
    """Return a hash that takes the usual time to verify and whose password is not known."""
    p = parameters
    salt, digest = (_encode_base64(bytes(length)) for length in (p.salt_len, p.hash_len))
    costs = f"m={p.memory_cost},t={p.time_cost},p={p.parallelism}"
    return f"$argon2id$v={p.version}${costs}${salt}${digest}"


def _encode_base64(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")
