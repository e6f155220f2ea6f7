"""A signature is over the bytes as they were sent, once, in time, and for one request."""

import asyncio
import json
import time
import unicodedata
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from harness import PIN, WRONG_PIN, Harness, HmacAuth
from partners.builders import (
    FUND_URL,
    create_partner,
    get_wallet_balance,
    parse_error,
    post_webhook,
)
from partners.builders import get_auth as partner_key
from pos.builders import LOOKUP_URL, PAY_URL, VERIFY_URL, PosDriver, new_request_id
from tapgate import signing
from tapgate.clock import format_rfc3339, system_clock

UNAUTHORIZED = (401, "UNAUTHORIZED")

#: What becomes of a body that one program reads and another writes anew. Each means the same.
REENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "other order": lambda raw: _encode_json(dict(reversed(json.loads(raw).items()))),
    "no spaces": lambda raw: json.dumps(json.loads(raw), separators=(",", ":")).encode(),
    "indented": lambda raw: json.dumps(json.loads(raw), indent=1).encode(),
    "letters escaped": lambda raw: json.dumps(json.loads(raw), ensure_ascii=True).encode(),
    "slashes escaped": lambda raw: raw.replace(b"/", b"\\/"),
    "a name escaped": lambda raw: raw.replace(b'"amount"', b'"\\u0061mount"'),
    "numbers as floats": lambda raw: raw.replace(b": 1}", b": 1.0}"),
    "the same key again": lambda raw: raw[:-1] + b', "amount": "5"}',
    "composed letters": lambda raw: unicodedata.normalize("NFC", raw.decode()).encode(),
    "a byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
    "a last line end": lambda raw: raw + b"\n",
    "a first space": lambda raw: b" " + raw,
    "another amount": lambda raw: raw.replace(b'"amount": "5"', b'"amount": "50"'),
}


def _encode_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _sign_headers(
    key: HmacAuth, body: bytes, path: str, timestamp: str | None = None
) -> dict[str, str]:
    moment = format_rfc3339(system_clock()) if timestamp is None else timestamp
    partner = {} if key.partner_id is None else {"X-Partner-ID": key.partner_id}
    return {
        "X-API-Key-ID": key.id,
        "X-Timestamp": moment,
        "X-Signature": signing.sign(key.secret.encode(), "POST", path, moment, body),
        **partner,
    }


async def count_transactions(world: Harness) -> int:
    count: int = await world.services.database.fetchval(
        "SELECT count(*) FROM transactions WHERE type NOT IN ('transfer', 'partner_deposit')"
    )
    return count


@pytest.fixture
async def shop(world: Harness) -> PosDriver:
    return await PosDriver.create(world)


async def test_a_payment_whose_body_was_written_anew_is_refused(shop: PosDriver) -> None:
    """Who signs the object and not its bytes accepts whatever some other writer makes of it."""
    raw = _encode_json(
        {
            "request_id": new_request_id(),
            "card_serial": shop.card,
            "amount": "5",
            "merchant_name": "Cafe\u0301 a/b",
            "metadata": {"n": 1},
        }
    )
    headers = _sign_headers(shop.merchant_auth, raw, PAY_URL)
    client = shop.harness.client
    for what, write in REENCODINGS.items():
        changed = write(raw)
        assert changed != raw, what
        answer = await client.post(PAY_URL, content=changed, headers=headers)
        assert parse_error(answer) == UNAUTHORIZED, what
    assert await count_transactions(shop.harness) == 0
    answer = await client.post(PAY_URL, content=raw, headers=headers)
    assert answer.status_code == 200
    assert await count_transactions(shop.harness) == 1


async def test_a_partners_top_up_that_was_written_anew_is_refused(world: Harness) -> None:
    """By either way in: a request that the partner signs, and its webhook."""
    new, customer = await create_partner(world, balance="1000"), await world.create_subscriber()
    order = {"amount": "5", "note": "Cafe\u0301 a/b", "metadata": {"n": 1}}
    request = _encode_json({"subscriber_id": customer["id"], "partner_reference": "A", **order})
    webhook = _encode_json({"phone_number": customer["phone_number"], "reference": "B", **order})
    headers = _sign_headers(partner_key(new), request, FUND_URL)
    signature = signing.webhook_signature(new["webhook_secret"].encode(), webhook)
    for what, write in REENCODINGS.items():
        answer = await world.client.post(FUND_URL, content=write(request), headers=headers)
        assert parse_error(answer) == UNAUTHORIZED, what
        answer = await post_webhook(
            world.client, new, write(webhook), **{"X-Webhook-Signature": signature}
        )
        assert parse_error(answer) == UNAUTHORIZED, what
    assert await count_transactions(world) == 0
    assert (await world.client.post(FUND_URL, content=request, headers=headers)).is_success
    assert (await post_webhook(world.client, new, webhook)).is_success
    assert await get_wallet_balance(world, customer) == "10.00"


async def test_of_a_key_that_is_given_twice_one_value_is_checked_and_used(shop: PosDriver) -> None:
    """One reader takes the first, another the last: the limits are checked on one amount and the
    other is paid."""
    name, world = new_request_id(), shop.harness
    twice = (
        f'{{"request_id": "{name}", "card_serial": "{shop.card}", "pin": "{WRONG_PIN}",'
        f'"amount": "1", "amount": "700", "pin": "{PIN}"}}'
    ).encode()
    answer = await world.client.post(
        PAY_URL, content=twice, headers=_sign_headers(shop.merchant_auth, twice, PAY_URL)
    )
    assert (answer.status_code, answer.json()["amount"]) == (200, "700.00 SLE")
    assert await shop.get_balance() == 300_00
    # The same for who repeats it: not another order, and not the first amount.
    again = await shop.pay("700", request_id=name, pin=PIN)
    assert again.headers["Idempotent-Replayed"] == "true"
    other = await shop.pay("1", request_id=name, pin=PIN)
    assert parse_error(other) == (409, "DUPLICATE_REQUEST")
    # Above the limit for payments without a PIN, whichever value is looked at last.
    bare = twice.replace(f'"pin": "{PIN}"'.encode(), b'"pin": null').replace(b"700", b"501")
    bare = bare.replace(name.encode(), new_request_id().encode())
    answer = await world.client.post(
        PAY_URL, content=bare, headers=_sign_headers(shop.merchant_auth, bare, PAY_URL)
    )
    assert parse_error(answer) == (403, "PIN_REQUIRED")


TIMESTAMP_FORMATS = [
    "",
    " ",
    "0",
    "-1",
    "+{seconds}",
    "{seconds}.0",
    "{seconds}.5",
    "{seconds}000",
    "{seconds}e0",
    "0x{seconds:x}",
    "1_{seconds}",
    "9" * 400,
    "NaN",
    "{seconds},{seconds}",
    "٠١٢٣٤٥٦٧٨٩",
    "{day}",
    "{day}T{hour}",
    "{day} {hour}Z",
    "{day}T{hour}+01:00",
    "{day}T{hour}-00:00",
    "{day}T{hour}z+00:00",
    "{day}T{hour},5Z",
    "{day}T{hour}.Z",
    "+{day}T{hour}Z",
    "-{day}T{hour}Z",
    "{day}T24:00:00Z",
    "{day}T{hour}Z Z",
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "0000-00-00T00:00:00Z",
]


def build_odd_timestamps() -> list[str]:
    """Ways to write this very moment, and others, that some reader or other would take."""
    now = system_clock()
    parts = {"seconds": int(now.timestamp()), "day": f"{now:%Y-%m-%d}", "hour": f"{now:%H:%M:%S}"}
    return [text.format(**parts) for text in TIMESTAMP_FORMATS]


async def test_a_time_in_any_other_form_is_refused_however_well_it_is_signed(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    """A lenient reader of times takes milliseconds for a year in the far future, or Arabic digits
    for a number, and its window is open for ever."""
    till, service = await world.create_processor(), world.get_service_auth()
    body = b'{"card_identifier": "TAP-1"}'
    path, users = LOOKUP_URL, "/api/v1/subscribers"
    secret = world.services.settings.service_secrets[service.id].encode()
    for moment in build_odd_timestamps():
        raw = moment.encode()
        headers = {name: value.encode() for name, value in _sign_headers(till, body, path).items()}
        headers["X-Timestamp"] = raw
        shown = raw.decode("latin-1")
        headers["X-Signature"] = signing.sign(
            till.secret.encode(), "POST", path, shown, body
        ).encode()
        answer = await client.post(path, content=body, headers=headers)
        assert parse_error(answer) == UNAUTHORIZED, moment
        assert "X-Timestamp" in answer.json()["message"], moment
        headers = {
            "X-Service-Name": service.id.encode(),
            "X-Service-Timestamp": raw,
            "X-Service-Signature": signing.sign_service(secret, "GET", users, b"", shown).encode(),
        }
        answer = await client.get(users, headers=headers)
        assert parse_error(answer) == UNAUTHORIZED, moment
        assert "X-Service-Timestamp" in answer.json()["message"], moment


async def test_a_time_beyond_five_minutes_is_refused_before_and_after(
    client: httpx2.AsyncClient, world: Harness
) -> None:
    """Future times matter as much as stale ones: a request signed for tomorrow is good until
    then."""
    till, body, path = await world.create_processor(), b'{"card_identifier": "TAP-1"}', LOOKUP_URL
    secret = world.services.settings.service_secrets["messenger"].encode()
    for seconds, good in ((-310, False), (-290, True), (290, True), (310, False), (1e9, False)):
        moment = format_rfc3339(system_clock() + timedelta(seconds=seconds))
        answer = await client.post(
            path, content=body, headers=_sign_headers(till, body, path, moment)
        )
        assert (answer.status_code != 401) == good, seconds
        unix = str(int(time.time() + seconds))
        headers = {
            "X-Service-Name": "messenger",
            "X-Service-Timestamp": unix,
            "X-Service-Signature": signing.sign_service(secret, "GET", "/api/v1/cards", b"", unix),
        }
        answer = await client.get("/api/v1/cards", headers=headers)
        assert (answer.status_code != 401) == good, seconds


async def test_a_recorded_payment_sent_again_moves_nothing(
    shop: PosDriver, other_client: httpx2.AsyncClient
) -> None:
    """Whoever records a signed request can send it again while its time is good: to another
    process, to one that was started since, and many times at once."""
    client = shop.harness.client
    raw = _encode_json({"request_id": new_request_id(), "card_serial": shop.card, "amount": "5"})
    headers = _sign_headers(shop.merchant_auth, raw, PAY_URL)
    answers = await asyncio.gather(
        *(
            one.post(PAY_URL, content=raw, headers=headers)
            for one in (client, other_client)
            for _ in range(8)
        )
    )
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.json()["transaction_id"] for answer in answers}) == 1
    assert await shop.get_balance() == 995_00
    # Another name for it cannot be put beside the signed one.
    renamed = headers | {"Idempotency-Key": "another"}
    assert parse_error(await client.post(PAY_URL, content=raw, headers=renamed)) == (
        400,
        "INVALID_REQUEST",
    )
    # When its time is over it is not even answered.
    late = _sign_headers(
        shop.merchant_auth, raw, PAY_URL, format_rfc3339(system_clock() - timedelta(minutes=6))
    )
    assert parse_error(await client.post(PAY_URL, content=raw, headers=late)) == UNAUTHORIZED


async def test_a_recorded_top_up_sent_again_pays_nothing(
    world: Harness, other_client: httpx2.AsyncClient
) -> None:
    """Neither has a name for the request, and a webhook has no time either: the partner's own
    reference is what makes it one."""
    new, customer = await create_partner(world, balance="1000"), await world.create_subscriber()
    request = _encode_json(
        {"subscriber_id": customer["id"], "partner_reference": "A", "amount": "5"}
    )
    webhook = _encode_json(
        {"phone_number": customer["phone_number"], "reference": "B", "amount": "5"}
    )
    headers = _sign_headers(partner_key(new), request, FUND_URL)
    answers = await asyncio.gather(
        *(
            sent
            for one in (world.client, other_client)
            for _ in range(4)
            for sent in (
                one.post(FUND_URL, content=request, headers=headers),
                post_webhook(one, new, webhook),
            )
        )
    )
    assert {answer.status_code for answer in answers} == {200}
    assert await get_wallet_balance(world, customer) == "10.00"


async def test_a_recorded_look_at_a_card_tells_no_more_than_it_told(shop: PosDriver) -> None:
    """Nothing stops a request that only asks from being sent again: each wrong PIN counts, so that
    a recorded one is no way to try more often."""
    world = shop.harness
    raw = _encode_json({"card_serial": shop.card, "pin": WRONG_PIN})
    headers = _sign_headers(shop.merchant_auth, raw, VERIFY_URL)
    answers = [await world.client.post(VERIFY_URL, content=raw, headers=headers) for _ in range(4)]
    assert [parse_error(answer) for answer in answers] == [
        (400, "INVALID_PIN"),
        (400, "INVALID_PIN"),
        (400, "INVALID_PIN"),
        (403, "ACCOUNT_LOCKED"),
    ]
