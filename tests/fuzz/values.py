"""Meaningful values for request fields, by their usual names."""

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from drivers.actors import Customer, new_request_id
from fuzz.fixtures import FuzzFixtures
from harness import PIN
from tapgate.http.api.examples import build_example
from tapgate_client.schemas.cards import NewChildCard
from tapgate_client.schemas.subscribers import NewDocument, PinChange, Registration
from tapgate_client.schemas.wallets import TransferRequest

Values = dict[str, Any]
#: Declared examples, for fields whose value does not depend on the installation.
_FIXED_VALUES: Final[Values] = {
    name: build_example(struct)[name]
    for struct, names in {
        NewChildCard: ("child_pin", "daily_limit"),
        NewDocument: ("image",),
        PinChange: ("new_pin",),
        Registration: ("date_of_birth", "language"),
        TransferRequest: ("currency",),
    }.items()
    for name in names
}
#: Marks a field that must be removed.
ABSENT = object()
IsWanted = Callable[[str], bool]


@dataclass
class RequestSubjects:
    """The subscribers that take part in one request."""

    fixtures: FuzzFixtures
    rng: Random
    subscriber: Customer
    other_subscriber: Customer

    @property
    def random_amount(self) -> str:
        return f"{self.rng.randint(1, 12)}.{self.rng.randint(0, 99):02d}"


async def pick_subjects(fixtures: FuzzFixtures, rng: Random) -> RequestSubjects:
    return RequestSubjects(
        fixtures, rng, await fixtures.customers.acquire(rng), await fixtures.customers.acquire(rng)
    )


def build_common_values(subjects: RequestSubjects) -> Values:
    """Return values by field, parameter, and path parameter name."""
    fixtures, subscriber, other = subjects.fixtures, subjects.subscriber, subjects.other_subscriber
    today = datetime.now(UTC).date()
    return _FIXED_VALUES | {
        "subscriber_id": subscriber.id,
        "parent_subscriber_id": subscriber.id,
        "sender_id": subscriber.id,
        "user_id": subscriber.id,
        "resource_id": subscriber.id,
        "card_serial": subscriber.card,
        "serial": subscriber.card,
        "card_identifier": subscriber.card,
        "recipient_card_serial": other.card,
        "from_account_id": subscriber.account_id,
        "to_account_id": other.account_id,
        "pin": PIN,
        "old_pin": PIN,
        "parent_pin": PIN,
        "agent_pin": PIN,
        "amount": subjects.random_amount,
        "request_id": new_request_id(),
        "Idempotency-Key": ABSENT,
        "partner_reference": f"fuzz-{fixtures.next_number()}",
        "reference": f"fuzz-{fixtures.next_number()}",
        "phone_number": subscriber.phone,
        "phoneE164": subscriber.phone,
        "event": "message",
        "template": "one_time_code",
        "hub.mode": "subscribe",
        "hub.verify_token": fixtures.installation.settings.messenger_verify_token,
        "email": f"fuzz{fixtures.next_number()}@example.com",
        "id_number": f"SL-{fixtures.next_number()}",
        **dict.fromkeys(("from", "from_date"), str(today - timedelta(days=3))),
        **dict.fromkeys(("to", "to_date"), str(today)),
        "expires_at": f"{today.year + 1}-01-31T10:15:30Z",
        "rule_id": subjects.rng.choice(fixtures.rules)["id"],
        "kyc_level": subjects.rng.choice(list(fixtures.kyc_levels)),
        "cursor": subjects.rng.choice(fixtures.cursors) if fixtures.cursors else ABSENT,
        "transaction_id": ABSENT,
        "terminal_id": ABSENT,
        "partner_id": ABSENT,
        "parent_agent_id": ABSENT,
    }


def build_path_values(subjects: RequestSubjects, path: str) -> Values:
    """Return values specific to a path, such as the record that `id` refers to."""
    if path.startswith("/api/v1/subscribers"):
        return {"id": subjects.subscriber.id, "kyc_level": subjects.rng.randint(1, 3)}
    if path.startswith("/api/v1/messages"):
        return {"to": subjects.subscriber.phone}
    if path == "/api/v1/wallet/quote":
        return {"type": "transfer_p2p", "card_serial": ABSENT}
    if path == "/api/v1/wallet/transfer-p2p":
        return {"recipient_phone_number": ABSENT}
    if path.startswith("/api/v1/compliance/rules"):
        return {"id": subjects.rng.choice(subjects.fixtures.rules)["id"]}
    return {}


def fill_fields(
    fields: MutableMapping[str, Any], values: Mapping[str, Any], wanted: IsWanted
) -> None:
    """Set each field that has a value and that `wanted` selects."""
    for name in list(fields):
        if name in values and wanted(name):
            if values[name] is ABSENT:
                del fields[name]
            else:
                fields[name] = values[name]
