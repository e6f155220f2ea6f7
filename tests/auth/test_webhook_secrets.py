"""Secrets of partner webhooks."""

import pytest

from tapgate.auth.webhook_secrets import WebhookSecrets
from tapgate.core.vault import Vault, VaultError
from tapgate_client import signing

BODY = b'{"amount":"25.00"}'


def test_secret_is_sealed_for_one_partner(vault: Vault) -> None:
    secrets = WebhookSecrets(vault)
    new, other = secrets.create(7), secrets.create(7)
    assert new.secret != other.secret
    assert new.secret.encode() not in new.sealed
    signature = signing.webhook_signature(new.secret.encode(), BODY)
    assert secrets.is_valid_signature(7, [new.sealed], signature, BODY)
    assert not secrets.is_valid_signature(7, [other.sealed], signature, BODY)
    with pytest.raises(VaultError):
        secrets.is_valid_signature(8, [new.sealed], signature, BODY)


@pytest.mark.parametrize("signature", [None, "", "0" * 64])
def test_invalid_signature_is_rejected_with_and_without_a_secret(
    vault: Vault, signature: str | None
) -> None:
    secrets = WebhookSecrets(vault)
    assert not secrets.is_valid_signature(7, [], signature, BODY)
    assert not secrets.is_valid_signature(7, [secrets.create(7).sealed], signature, BODY)


def test_every_valid_secret_verifies(vault: Vault) -> None:
    secrets = WebhookSecrets(vault)
    current, previous, ended = (secrets.create(7) for _ in range(3))
    valid = [current.sealed, previous.sealed]
    for new in (current, previous):
        signature = signing.webhook_signature(new.secret.encode(), BODY)
        assert secrets.is_valid_signature(7, valid, signature, BODY)
    signature = signing.webhook_signature(ended.secret.encode(), BODY)
    assert not secrets.is_valid_signature(7, valid, signature, BODY)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_verification_opens_the_same_number_of_secrets_for_every_partner(
    vault: Vault, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    secrets, opened = WebhookSecrets(vault), []
    sealed = [secrets.create(7).sealed for _ in range(count)]
    original = vault.open
    monkeypatch.setattr(
        vault, "open", lambda data, context: opened.append(context) or original(data, context)
    )
    assert not secrets.is_valid_signature(7, sealed, "0" * 64, BODY)
    assert len(opened) == 2
