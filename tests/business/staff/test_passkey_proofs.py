"""Logins with a passkey: every check that can fail, challenges, counters and limits."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx2
import msgspec
from cryptography.hazmat.primitives.asymmetric import ec

from builders.auth import EMAIL, Headers, ListAuditEntries
from builders.passkeys import (
    USER_PRESENT,
    WRONG_PASSKEYS,
    Credential,
    PasskeyClient,
    build_passkey,
    forget_failures,
    get_code,
    log_in_with_password,
)
from tapgate.auth.passkey_challenges import CHALLENGE_LIFETIME, PasskeyChallenges
from tapgate.http.api.services import Services
from tapgate_client.schemas.passkeys import decode_binary, encode_binary


async def test_invalid_proof_is_rejected_and_audited(
    passkeys: PasskeyClient,
    ada: Headers,
    services: Services,
    list_audit_entries: ListAuditEntries,
) -> None:
    passkey = await passkeys.enroll(ada)
    other_key = ec.generate_private_key(ec.SECP256R1())
    wrong: dict[str, dict[str, Any]] = {
        **WRONG_PASSKEYS,
        "type": {"get_type": "webauthn.create"},
        "unknown passkey": {"id": bytes(32)},
        "key of another passkey": {"key": other_key},
        "user handle of another admin": {"user_handle": bytes(8)},
        "no user handle": {"user_handle": None},
    }
    for name, fields in wrong.items():
        response = await passkeys.log_in_with(msgspec.structs.replace(passkey, **fields))
        assert get_code(response) == (401, "UNAUTHORIZED"), name
        assert response.json()["message"] == "The passkey was not accepted.", name
        await forget_failures(services)
    entries = await list_audit_entries("admin.login", result="failure")
    assert len(entries) == len(wrong)
    assert {entry["resource_id"] for entry in entries} == {EMAIL, None}
    assert all(entry["reason"].startswith("Passkey rejected. ") for entry in entries)
    assert (await passkeys.log_in_with(passkey)).status_code == 200


async def test_tampered_proof_is_rejected(
    passkeys: PasskeyClient, ada: Headers, services: Services
) -> None:
    passkey = await passkeys.enroll(ada)

    def change_last_byte(credential: Credential, field: str) -> None:
        data = bytearray(decode_binary(credential["response"][field]))
        data[-1] ^= 1
        credential["response"][field] = encode_binary(bytes(data))

    def add_byte(credential: Credential, field: str) -> None:
        data = decode_binary(credential["response"][field])
        credential["response"][field] = encode_binary(data + b" ")

    cases: list[tuple[Callable[[Credential, str], None], str]] = [
        (change_last_byte, "signature"),
        (change_last_byte, "authenticatorData"),
        (add_byte, "authenticatorData"),
        (add_byte, "clientDataJSON"),
        (change_last_byte, "userHandle"),
    ]
    for tamper, field in cases:
        credential = passkey.get(await passkeys.get_options())
        tamper(credential, field)
        assert get_code(await passkeys.log_in(credential)) == (401, "UNAUTHORIZED"), field
        await forget_failures(services)


async def test_challenge_works_once_even_if_the_proof_was_wrong(
    passkeys: PasskeyClient, ada: Headers
) -> None:
    passkey = await passkeys.enroll(ada)
    options = await passkeys.get_options()
    assert (await passkeys.log_in(passkey.get(options))).status_code == 200
    assert get_code(await passkeys.log_in(passkey.get(options))) == (401, "UNAUTHORIZED")
    options = await passkeys.get_options()
    wrong = msgspec.structs.replace(passkey, flags=USER_PRESENT)
    assert (await passkeys.log_in(wrong.get(options))).status_code == 401
    assert (await passkeys.log_in(passkey.get(options))).status_code == 401
    enrollment = (await passkeys.start_enrollment(ada)).json()
    assert (await passkeys.log_in(passkey.get(enrollment))).status_code == 401


async def test_challenge_expires_after_five_minutes(
    passkeys: PasskeyClient, ada: Headers, services: Services
) -> None:
    passkey = await passkeys.enroll(ada)

    async def log_in_after(seconds: float) -> int:
        """Log in with a challenge that was issued `seconds` ago."""
        age = timedelta(seconds=seconds)
        challenges = PasskeyChallenges(
            services.database, services.vault, lambda: services.clock() - age
        )
        challenge = encode_binary(challenges.create(b"authenticate"))
        return (await passkeys.log_in(passkey.get({"challenge": challenge}))).status_code

    assert await log_in_after(CHALLENGE_LIFETIME.total_seconds() - 60) == 200
    assert await log_in_after(CHALLENGE_LIFETIME.total_seconds()) == 401


async def test_concurrent_uses_of_one_challenge_log_in_once(
    passkeys: PasskeyClient,
    other_process_client: httpx2.AsyncClient,
    ada: Headers,
    services: Services,
) -> None:
    passkey = await passkeys.enroll(ada)
    other_process = PasskeyClient(other_process_client)
    for _ in range(5):
        credential = passkey.get(await passkeys.get_options())
        responses = await asyncio.gather(
            *(caller.log_in(credential) for caller in (passkeys, other_process) for _ in range(2))
        )
        assert sorted(response.status_code for response in responses) == [200, 401, 401, 401]
        await forget_failures(services)


async def test_sign_count_must_increase(
    passkeys: PasskeyClient, ada: Headers, list_audit_entries: ListAuditEntries
) -> None:
    passkey = await passkeys.enroll(ada, sign_count=5)
    for sign_count, status in ((6, 200), (6, 401), (5, 401), (0, 401), (8, 200)):
        passkey.sign_count = sign_count
        assert (await passkeys.log_in_with(passkey)).status_code == status, sign_count
    entries = await list_audit_entries("admin.login", result="failure")
    expected = {(EMAIL, "Passkey rejected. Sign count did not increase: the passkey may be a copy")}
    assert {(entry["resource_id"], entry["reason"]) for entry in entries} == expected


async def test_passkeys_without_a_counter_are_accepted(
    passkeys: PasskeyClient, ada: Headers
) -> None:
    passkey = await passkeys.enroll(ada)
    for _ in range(2):
        assert (await passkeys.log_in_with(passkey)).status_code == 200


async def test_failed_passkey_logins_count_as_failed_logins(
    passkeys: PasskeyClient, ada: Headers
) -> None:
    passkey = await passkeys.enroll(ada)
    wrong = msgspec.structs.replace(passkey, flags=USER_PRESENT)
    for _ in range(5):
        assert (await passkeys.log_in_with(wrong)).status_code == 401
    limited = await passkeys.log_in_with(passkey)
    assert get_code(limited) == (429, "RATE_LIMITED")
    assert int(limited.headers["Retry-After"]) > 0
    assert get_code(await log_in_with_password(passkeys.client)) == (429, "RATE_LIMITED")


async def test_unknown_passkeys_are_limited_per_address(
    passkeys: PasskeyClient, ada: Headers
) -> None:
    unknown = msgspec.structs.replace(build_passkey(), user_handle=bytes(8))
    options = await passkeys.get_options()
    codes = [(await passkeys.log_in(unknown.get(options))).status_code for _ in range(40)]
    assert codes[:30] == [401] * 30
    assert codes[-1] == 429
