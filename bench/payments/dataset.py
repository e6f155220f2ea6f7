"""Benchmark dataset: funded subscribers with cards, and processors with terminals.

Bulk data is copied directly into the tables. Money comes in through the ledger, as in production.
"""

import asyncio
from random import Random
from typing import Any, NamedTuple

from tapgate.auth.actors import SYSTEM_ACTOR
from tapgate.auth.hmac_keys import NewHmacKey
from tapgate.business.customers.cards import keysets
from tapgate.business.customers.cards.keysets import Keyset
from tapgate.business.merchants.processors import operations as processors
from tapgate.business.merchants.processors.terminals import operations as terminals
from tapgate.business.staff.api_keys import operations as api_keys
from tapgate.business.staff.queries import get_first_system_admin
from tapgate.events.webhooks import operations as webhooks
from tapgate.http.api.services import Services
from tapgate.ledger import chart, commands
from tapgate.ledger.card_proofs.issuer_keys import IssuerKeys
from tapgate.ledger.card_proofs.proof_verifier import format_uid
from tapgate.ledger.card_proofs.sun import diversify_file_read_key
from tapgate.ledger.commands import Command
from tapgate_client import ids
from tapgate_client.schemas.admin import NewApiKey, Scope
from tapgate_client.schemas.card_proofs import NewKeyset
from tapgate_client.schemas.processors import NewProcessor, NewTerminal
from tapgate_client.schemas.webhooks import NewWebhookEndpoint
from tapgate_sandbox.software_card import SoftwareCard

#: In minor units. Covers all payments that a card makes in the benchmark.
_INITIAL_BALANCE = 20_000_00
_COMMAND_BATCH_SIZE = 1_000
#: There are fewer cards that sign their taps, because fewer phases use them: so few that lookups
#: before a phase reach each card in every worker. But there are more than connections, so that no
#: two payments with one card are concurrent.
_CARDS_PER_SIGNING_CARD = 10
_MIN_SIGNING_CARDS = 200
#: As many as a subscriber with 5,000 transactions a year has in a month.
_BUSY_CARD_DEPOSITS = 420
#: Copying many cards takes longer than the gateway's statement timeout.
_SETUP_TIMEOUT_SECONDS = 120.0
_DISABLE_TIMEOUT = "SET LOCAL statement_timeout = 0"
#: Subscribes to exceptional events, as an operator would. No server listens at this URL.
_FAILURE_WEBHOOK = NewWebhookEndpoint(
    url="http://127.0.0.1:9/events",
    events=["transaction.failed", "transaction.refunded", "alert.created"],
)


class Card(NamedTuple):
    serial: str
    pin: str
    subscriber_id: str
    chip: SoftwareCard | None = None  # of a card that signs its taps


class SigningKey(NamedTuple):
    id: str
    secret: bytes


class Dataset(NamedTuple):
    cards: list[Card]
    signing_cards: list[Card]
    few_cards: list[Card]  # as many as `signing_cards`, for a comparison with these
    busy_card: Card  # of a subscriber with many deposits
    terminals: list[SigningKey]  # one per processor
    api_key: str


async def build(services: Services, *, cards: int, processors: int) -> Dataset:
    keys = [await _create_terminal(services, number) for number in range(processors)]
    new_cards = await _create_cards(services, range(cards))
    async with services.transaction() as tx:
        keyset = await keysets.create(
            tx,
            SYSTEM_ACTOR,
            NewKeyset(name="Bench"),
            vault=services.vault,
            signals=services.signals,
        )
    signing_count = max(_MIN_SIGNING_CARDS, cards // _CARDS_PER_SIGNING_CARD)
    signing_cards, few_cards = [
        await _create_cards(services, range(first, first + signing_count), card_keyset)
        for first, card_keyset in ((cards, keyset), (cards + signing_count, None))
    ]
    busy_card = new_cards[0]
    busy_owner = ids.decode(ids.SUBSCRIBER, busy_card.subscriber_id)
    assert busy_owner is not None
    await _fund_wallets(services, [busy_owner] * _BUSY_CARD_DEPOSITS, amount=1_00)
    async with services.transaction() as tx:
        await webhooks.create(
            tx, SYSTEM_ACTOR, _FAILURE_WEBHOOK, vault=services.vault, signals=services.signals
        )
    admin_id = await get_first_system_admin(services.database)
    assert admin_id is not None
    async with services.transaction() as tx:
        _, api_key = await api_keys.create(
            tx,
            SYSTEM_ACTOR,
            NewApiKey(
                name="bench", scopes=[Scope.PAYMENTS_WRITE, Scope.PAYMENTS_READ, Scope.BALANCE_READ]
            ),
            created_by=admin_id,
            api_keys=services.authenticator.api_keys,
        )
    async with services.transaction() as tx:
        await tx.execute(_DISABLE_TIMEOUT)
        await tx.execute("ANALYZE", timeout=_SETUP_TIMEOUT_SECONDS)
    return Dataset(
        new_cards,
        signing_cards,
        few_cards,
        busy_card,
        [SigningKey(ids.encode(ids.KEY, key.id), key.secret.encode()) for key in keys],
        api_key,
    )


async def _create_terminal(services: Services, number: int) -> NewHmacKey:
    actor, hmac_keys = SYSTEM_ACTOR, services.authenticator.hmac_keys
    new_processor = NewProcessor(
        name=f"Shop {number}", phone_number=f"+2322595{number:04}", email="shop@example.com"
    )
    async with services.transaction() as tx:
        processor, _ = await processors.create(
            tx, actor, new_processor, currency=services.settings.currency, hmac_keys=hmac_keys
        )
        new_terminal = NewTerminal(name="Till 1")
        added = await terminals.add(tx, actor, processor.id, new_terminal, hmac_keys=hmac_keys)
    return added.key


async def _create_cards(
    services: Services, numbers: range, keyset: Keyset | None = None
) -> list[Card]:
    """Create funded subscribers with a card each. With a keyset, the cards sign their taps."""
    rng, now, new_id = Random(23225 + numbers.start), services.clock(), services.new_id
    keys = None if keyset is None else IssuerKeys.open(services.vault, keyset.id, keyset.keys)
    rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _COLUMNS}
    cards, owners = [], []
    for number in numbers:
        owner, account, pin = new_id(), new_id(), f"{rng.randrange(10_000):04}"
        stored = services.pin_verifier.hash(pin)
        serial = f"BENCH-{number:06}"
        name, masked = f"Aminata Kamara{number}", "Aminata K."
        currency = services.settings.currency
        rows["accounts"].append((account, "wallet", owner, name, masked, currency, 1, True))
        rows["subscribers"].append(
            (owner, account, f"+{23225000000 + number}", "Aminata", f"Kamara{number}", now, now)
        )
        rows["pins"].append((owner, stored.key_id, stored.salt, stored.verifier))
        uid, chip = bytes([0x04, *number.to_bytes(6)]), None
        signing: tuple[Any, ...] = ("none", None, None)
        if keys is not None and keyset is not None:
            file_read_key = diversify_file_read_key(keys.file_read, uid, 1)
            chip = SoftwareCard(uid, keys.meta_read, file_read_key)
            signing = ("sun", keyset.id, 1)
        card = (new_id(), serial, "PARENT", "ACTIVE", owner, account, owner, now, now, now)
        rows["cards"].append((*card, format_uid(uid), *signing))
        cards.append(Card(serial, pin, ids.encode(ids.SUBSCRIBER, owner), chip))
        owners.append(owner)
    async with services.transaction() as tx:
        await tx.execute(_DISABLE_TIMEOUT)
        for table, columns in _COLUMNS.items():
            await tx.copy_records_to_table(
                table, records=rows[table], columns=columns.split(), timeout=_SETUP_TIMEOUT_SECONDS
            )
    await _fund_wallets(services, owners)
    rng.shuffle(cards)  # the order of payments must not follow the order of insertion
    return cards


_COLUMNS = {
    "accounts": "id kind owner_id holder_name public_name currency kyc_level checked",
    "subscribers": "id account_id phone_number first_name last_name created_at updated_at",
    "pins": "holder_id key_id salt verifier",
    "cards": "id serial type status subscriber_id account_id pin_holder_id linked_at created_at"
    " updated_at uid authenticity keyset_id key_version",
}


async def _fund_wallets(
    services: Services, owners: list[int], *, amount: int = _INITIAL_BALANCE
) -> None:
    for start in range(0, len(owners), _COMMAND_BATCH_SIZE):
        outcomes = await asyncio.gather(
            *(
                services.ledger.submit(
                    Command(
                        type=chart.TRANSFER,
                        channel="admin",
                        payer=commands.CASH_PARTY,
                        payee=commands.subscriber_party(owner),
                        amount=amount,
                    )
                )
                for owner in owners[start : start + _COMMAND_BATCH_SIZE]
            )
        )
        for outcome in outcomes:
            outcome.require_accepted()
