"""Passwords: Argon2id as recommended, off the loop, a bounded number at a time."""

import asyncio
import threading

import argon2
import pytest

from tapgate.credentials import passwords
from tapgate.credentials.passwords import OWASP, Passwords
from tapgate.errors import ApiError, Code

CHEAP = argon2.Parameters(argon2.Type.ID, 19, 16, 32, 1, 8, 1)


async def test_the_parameters_are_those_recommended() -> None:
    stored = await Passwords().hash("correct horse battery")
    assert stored.startswith("$argon2id$v=19$m=19456,t=2,p=1$")


async def test_only_the_password_itself_matches() -> None:
    vault = Passwords(CHEAP)
    stored = await vault.hash("correct horse battery")
    assert await vault.matches(stored, "correct horse battery")
    assert not await vault.matches(stored, "correct horse batterz")
    assert not await vault.matches(stored, "")


async def test_nobody_has_no_password() -> None:
    checked = Passwords(CHEAP)
    for password in ("", "\x00", "correct horse battery"):
        assert not await checked.matches(None, password)


async def test_nobodys_hash_costs_what_every_other_does(monkeypatch: pytest.MonkeyPatch) -> None:
    verified = []

    def verify(self: argon2.PasswordHasher, stored: str, password: str) -> bool:
        verified.append(argon2.extract_parameters(stored))
        raise argon2.exceptions.VerifyMismatchError

    monkeypatch.setattr(argon2.PasswordHasher, "verify", verify)
    await Passwords().matches(None, "anything")
    assert verified == [OWASP]


async def test_a_hash_with_other_parameters_is_outdated() -> None:
    stored = await Passwords(CHEAP).hash("correct horse battery")
    assert not Passwords(CHEAP).is_outdated(stored)
    assert Passwords().is_outdated(stored)
    assert await Passwords().matches(stored, "correct horse battery")


async def test_a_flood_is_told_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, at_once, most_at_once = threading.Event(), 0, 0

    def slow(self: argon2.PasswordHasher, password: str) -> str:
        nonlocal at_once, most_at_once
        at_once += 1
        most_at_once = max(most_at_once, at_once)
        go_on.wait(timeout=10)
        at_once -= 1
        return "hash"

    monkeypatch.setattr(argon2.PasswordHasher, "hash", slow)
    checked = Passwords(CHEAP)
    tries = [asyncio.create_task(checked.hash("x")) for _ in range(40)]
    await asyncio.sleep(0)
    refused = [task for task in tries if task.done()]
    go_on.set()
    answers = await asyncio.gather(*tries, return_exceptions=True)

    assert len(refused) == 40 - passwords._MOST_WAITING
    assert answers.count("hash") == passwords._MOST_WAITING
    for task in refused:
        error = task.exception()
        assert isinstance(error, ApiError)
        assert error.code is Code.SERVICE_UNAVAILABLE
    assert most_at_once <= passwords._AT_ONCE
    assert await checked.hash("x") == "hash"
