"""Verification of received events, and signatures of partner webhooks."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from cases import each
from drivers.in_process import ClientFactory
from tapgate.events.webhooks import model
from tapgate_client import AuthenticationError, SignatureError, signing, webhooks
from tapgate_client.clock import system_clock

SECRET = signing.new_standard_secret()
BODY = model.encode_body("card.linked", system_clock(), '{"serial": "TAP-1"}')


def build_headers(secret: str = SECRET, *, now: datetime | None = None) -> dict[str, str]:
    """Return the headers that the gateway sends."""
    return model.build_headers(1 << 58, [secret], BODY, now or system_clock())


def test_gateway_event_is_verified_and_decoded() -> None:
    event = webhooks.verify(SECRET, build_headers(), BODY)
    assert (event.type, event.data) == ("card.linked", {"serial": "TAP-1"})
    assert event.id == build_headers()["webhook-id"]


def test_header_names_are_case_insensitive() -> None:
    uppercase = {name.upper(): value for name, value in build_headers().items()}
    assert webhooks.verify(SECRET, uppercase, BODY).type == "card.linked"


def test_one_valid_signature_of_several_is_enough() -> None:
    old, sent = build_headers(signing.new_standard_secret()), build_headers()
    headers = sent | {
        "webhook-signature": f"{old['webhook-signature']} {sent['webhook-signature']}"
    }
    assert webhooks.verify(SECRET, headers, BODY).type == "card.linked"


def test_event_is_verified_against_several_secrets() -> None:
    others = [signing.new_standard_secret() for _ in range(2)]
    assert webhooks.verify([others[0], SECRET], build_headers(), BODY).type == "card.linked"
    assert webhooks.verify(iter([SECRET, others[0]]), build_headers(), BODY).type == "card.linked"
    for secrets in (others, []):
        with pytest.raises(SignatureError, match="no signature"):
            webhooks.verify(secrets, build_headers(), BODY)


@each("index", [0, 1])
def test_old_and_new_secret_both_verify_during_rotation(index: int) -> None:
    new, old = signing.new_standard_secret(), signing.new_standard_secret()
    sent = model.build_headers(1 << 58, [new, old], BODY, system_clock())
    assert sent["webhook-signature"].count("v1,") == 2
    assert webhooks.verify([new, old][index], sent, BODY).id == sent["webhook-id"]


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@each("seconds", [-300, 300])
def test_clock_skew_of_five_minutes_is_accepted(seconds: int) -> None:
    sent = build_headers(now=NOON + timedelta(seconds=seconds))
    assert webhooks.verify(SECRET, sent, BODY, clock=lambda: NOON).type == "card.linked"


@each("seconds", [-301, 301])
def test_timestamp_more_than_five_minutes_off_is_rejected(seconds: int) -> None:
    sent = build_headers(now=NOON + timedelta(seconds=seconds))
    with pytest.raises(SignatureError, match="5 minutes"):
        webhooks.verify(SECRET, sent, BODY, clock=lambda: NOON)


def test_default_clock_is_the_system_clock() -> None:
    with pytest.raises(SignatureError, match="5 minutes"):
        webhooks.verify(SECRET, build_headers(now=NOON), BODY)


@each("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
@each("value", [None, "", "0", "é", "v1,", "99999999999"])
def test_missing_or_altered_header_is_rejected(name: str, value: str | None) -> None:
    sent = build_headers() | ({} if value is None else {name: value})
    if value is None:
        del sent[name]
    with pytest.raises(SignatureError):
        webhooks.verify(SECRET, sent, BODY)


def test_altered_body_or_wrong_secret_is_rejected() -> None:
    for secret, body in ((SECRET, BODY + b" "), (signing.new_standard_secret(), BODY)):
        with pytest.raises(SignatureError, match="no signature"):
            webhooks.verify(secret, build_headers(), body)


def test_signed_body_that_is_not_an_event_is_rejected() -> None:
    now = int(time.time())
    for body in (b"{}", b"[]", b"\xff", b""):
        sent = {
            "webhook-id": "dlv_1",
            "webhook-timestamp": str(now),
            "webhook-signature": signing.standard_webhook_signature(SECRET, "dlv_1", now, body),
        }
        with pytest.raises(SignatureError, match="not a valid event"):
            webhooks.verify(SECRET, sent, body)


async def test_replayed_partner_webhook_credits_once(client_factory: ClientFactory) -> None:
    admin = await client_factory.create_for_admin()
    partner = await admin.partners.create(name="Bank", overdraft_limit="1000")
    subscriber = await client_factory.harness.create_subscriber()
    anonymous = client_factory.create_async()
    for replayed in (False, True):
        receipt = await anonymous.partner_webhooks.send(
            partner.partner.id,
            partner.webhook_secret,
            reference="R-1",
            amount="25",
            phone_number=subscriber["phone_number"],
        )
        assert receipt.replayed is replayed
    assert (await admin.wallet.get_balance(subscriber["id"])).balance == "25.00"
    with pytest.raises(AuthenticationError):
        await anonymous.partner_webhooks.send(
            partner.partner.id, "wrong", reference="R-2", amount="25", phone_number="+23276000000"
        )
