"""Passwords: OWASP parameters for Argon2id, and hashing in a bounded number of threads."""

import asyncio
import threading

import argon2
import pytest

from builders.passwords import FAST_ARGON2
from tapgate.auth import passwords
from tapgate.auth.passwords import OWASP_PARAMETERS, Passwords
from tapgate_client.errors import ApiError, Code


async def test_hash_uses_the_owasp_argon2id_parameters() -> None:
    stored = await Passwords().hash("correct horse battery")
    assert stored.startswith("$argon2id$v=19$m=19456,t=2,p=1$")


async def test_only_the_exact_password_matches() -> None:
    hasher = Passwords(FAST_ARGON2)
    stored = await hasher.hash("correct horse battery")
    assert await hasher.matches(stored, "correct horse battery")
    assert not await hasher.matches(stored, "correct horse batterz")
    assert not await hasher.matches(stored, "")


async def test_unknown_admin_matches_no_password() -> None:
    hasher = Passwords(FAST_ARGON2)
    for password in ("", "\x00", "correct horse battery"):
        assert not await hasher.matches(None, password)


async def test_unknown_admin_costs_as_much_as_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    verified = []

    def verify(self: argon2.PasswordHasher, stored: str, password: str) -> bool:
        verified.append(argon2.extract_parameters(stored))
        raise argon2.exceptions.VerifyMismatchError

    monkeypatch.setattr(argon2.PasswordHasher, "verify", verify)
    await Passwords().matches(None, "anything")
    assert verified == [OWASP_PARAMETERS]


async def test_hash_with_other_parameters_is_outdated() -> None:
    stored = await Passwords(FAST_ARGON2).hash("correct horse battery")
    assert not Passwords(FAST_ARGON2).is_outdated(stored)
    assert Passwords().is_outdated(stored)
    assert await Passwords().matches(stored, "correct horse battery")


class BlockingHasher:
    """Replaces the hash function and blocks until the test sets `resume`, at most 10 seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.resume = threading.Event()
        self.order: list[str] = []
        self.max_running = 0
        self._running = 0
        monkeypatch.setattr(argon2.PasswordHasher, "hash", lambda _, password: self._hash(password))

    def _hash(self, password: str) -> str:
        self._running += 1
        self.max_running = max(self.max_running, self._running)
        self.order.append(password)
        self.resume.wait(timeout=60)
        self._running -= 1
        return "hash"


async def test_flood_from_one_address_is_bounded_and_gets_retry_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    blocking, hasher = BlockingHasher(monkeypatch), Passwords(FAST_ARGON2)
    tasks = [asyncio.create_task(hasher.hash("x", "192.0.2.1")) for _ in range(40)]
    await asyncio.sleep(0)
    rejected = [task for task in tasks if task.done()]
    blocking.resume.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    accepted = passwords.MAX_THREADS + passwords.MAX_WAITING_PER_ADDRESS
    assert len(rejected) == 40 - accepted
    assert outcomes.count("hash") == accepted
    for task in rejected:
        error = task.exception()
        assert isinstance(error, ApiError)
        assert (error.code, error.headers) == (Code.SERVICE_UNAVAILABLE, {"Retry-After": "1"})
    assert blocking.max_running <= passwords.MAX_THREADS
    assert await hasher.hash("x") == "hash"


async def test_other_addresses_are_served_in_turn_during_a_flood(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passwords, "MAX_THREADS", 1)
    blocking, hasher = BlockingHasher(monkeypatch), Passwords(FAST_ARGON2)
    flood = [asyncio.create_task(hasher.hash("flood", "192.0.2.1")) for _ in range(40)]
    await asyncio.sleep(0)
    others = [asyncio.create_task(hasher.hash(f"{n}", f"192.0.2.{n}")) for n in range(2, 11)]
    await asyncio.sleep(0)
    blocking.resume.set()
    assert await asyncio.gather(*others) == ["hash"] * 9
    await asyncio.gather(*flood, return_exceptions=True)
    # One flood request was already running, and one was first in the rotation.
    assert blocking.order[:11] == ["flood", "flood", *(f"{n}" for n in range(2, 11))]
