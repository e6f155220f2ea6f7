"""Bearer credentials and outgoing event signatures: no mutation may be accepted."""

import pytest

from fuzz import mutations
from harness import BearerAuth, Harness
from tapgate_client import signing
from tapgate_client.errors import ApiError


async def is_accepted(harness: Harness, authorization: bytes) -> bool:
    try:
        principal = await harness.services.authenticator.authenticate(
            "GET", "/api/v1/admin/me", b"", {b"authorization": authorization}, b""
        )
    except ApiError as error:
        assert error.status == 401, error
        return False
    return principal is not None


def get_authorization(bearer: BearerAuth) -> bytes:
    return f"Bearer {bearer.credential}".encode()


def is_equivalent(mutant: bytes, original: bytes) -> bool:
    """Return whether only the case of the scheme or the surrounding white space differs."""
    scheme, _, credential = mutant.partition(b" ")
    original_scheme, _, expected = original.partition(b" ")
    return scheme.lower() == original_scheme.lower() and credential.strip(b" \t") == expected


@pytest.mark.parametrize("kind", ["api key", "access token"])
async def test_mutated_bearer_credential_is_rejected(harness: Harness, kind: str) -> None:
    bearer = await (
        harness.create_api_key("cards:read") if kind == "api key" else harness.create_admin()
    )
    original = get_authorization(bearer)
    assert await is_accepted(harness, original)
    mutants = [
        mutant for _, mutant in mutations.mutate(original) if not is_equivalent(mutant, original)
    ]
    assert len(mutants) > 500
    accepted = [mutant for mutant in mutants if await is_accepted(harness, mutant)]
    assert accepted == []


def test_mutated_event_signature_id_or_body_fails_verification() -> None:
    secret = signing.new_standard_secret()
    parts = {"id": b"dlv_01h2x3", "body": b'{"type":"card.blocked","data":{}}'}
    signature = signing.standard_webhook_signature(secret, "dlv_01h2x3", 1769854530, parts["body"])

    def verifies(name: str, value: bytes) -> bool:
        changed = {**parts, "signature": signature.encode(), name: value}
        return signing.verify_standard_webhook(
            secret,
            changed["signature"].decode("latin-1"),
            changed["id"].decode("latin-1"),
            1769854530,
            changed["body"],
        )

    for name, value in {**parts, "signature": signature.encode()}.items():
        assert verifies(name, value)
        for mutation, mutant in mutations.mutate(value):
            # The header is a space-separated list of signatures, so an extra space changes nothing.
            if name == "signature" and mutant.strip(b" ") == value:
                continue
            assert not verifies(name, mutant), (name, mutation)
    for timestamp in (1769854529, 1769854531, 17698545300):
        found = signing.verify_standard_webhook(
            secret, signature, "dlv_01h2x3", timestamp, parts["body"]
        )
        assert not found
