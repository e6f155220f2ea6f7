"""Seeds the demo's cards, agents, merchants and subscribers with the regular operations."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import date, timedelta
from random import Random
from typing import Concatenate, Final, ParamSpec, TypeVar

from tapgate.auth.actors import Actor
from tapgate.auth.principals import Principal
from tapgate.business.agents import operations as agents
from tapgate.business.customers.cards import keysets, upload
from tapgate.business.customers.cards import operations as cards
from tapgate.business.customers.subscribers import operations as subscribers
from tapgate.business.customers.subscribers.kyc_documents import operations as kyc_documents
from tapgate.business.customers.subscribers.kyc_documents.model import Document
from tapgate.business.merchants.processors import operations as processors
from tapgate.business.merchants.processors.terminals import operations as terminals
from tapgate.business.partners import operations as partners
from tapgate.business.support import operations as support
from tapgate.http.api.services import Services
from tapgate.runtime.store.transaction import Transaction
from tapgate_client import money
from tapgate_client.schemas.agents import AgentRegistration, AgentType
from tapgate_client.schemas.cards import CardBlockReason, CardLink, NewChildCard
from tapgate_client.schemas.partners import NewPartner
from tapgate_client.schemas.processors import NewProcessor, NewTerminal
from tapgate_client.schemas.subscribers import (
    IdType,
    KycDocumentType,
    KycStatus,
    Registration,
    SubscriberCategory,
    SubscriberUpdate,
)
from tapgate_client.schemas.support import NewSupportMessage
from tapgate_sandbox.demo import country, people, signing_cards, undo
from tapgate_sandbox.demo.batches import pay_batch
from tapgate_sandbox.demo.country import Person, Size
from tapgate_sandbox.demo.documents import draw_document
from tapgate_sandbox.demo.finance import close_day, open_bank_accounts, pay_out
from tapgate_sandbox.demo.people import Agent, ChildCard, Country, Resident, Shop, Terminal

P = ParamSpec("P")
T = TypeVar("T")

#: First demo card's serial; its presence shows that the demo exists.
FIRST_SERIAL: Final = "DEMO-000001"

# Numbers of the residents with a special role. The examples use the first two.
HERO, FRIEND, EMPLOYER, HOUSE_BUYER, RESTRICTED, BLOCKED, LOST_CARD, EXPIRED_CARD = range(8)
CLONED_CARD: Final = 9
_FIXED_PEOPLE: Final = {
    HERO: Person("Aminata", "Kamara", "12 Wilkinson Road, Freetown"),
    FRIEND: Person("Mohamed", "Sesay", "7 Hangha Road, Kenema"),
    EMPLOYER: Person("Lumley", "Traders Union", "1 Lumley Beach Road, Freetown"),
}
_FIXED_PINS: Final = {HERO: "4826", FRIEND: "7391"}
#: Of the first super-agent and its first sub-agent, whose chats the documents play.
SUPER_AGENT_PIN, _SUB_AGENT_PIN = "3958", "6172"
_CATEGORIES: Final = {
    HERO: SubscriberCategory.VIP,
    HOUSE_BUYER: SubscriberCategory.VIP,
    EMPLOYER: SubscriberCategory.CORPORATE,
}
_KYC_LEVELS: Final = {HERO: 2, FRIEND: 2, EMPLOYER: 3, HOUSE_BUYER: 3, RESTRICTED: 3}

#: More than one, for child cards, replacements and cards that stay in stock.
_CARDS_PER_RESIDENT: Final = 1.5
_ROWS_PER_FILE: Final = 10_000
#: Less than the connection pool size.
_MAX_CONCURRENCY: Final = 8

# The demo's phone numbers start with +232 25.
_RESIDENT_PHONE_BASE, _AGENT_PHONE_BASE, _SHOP_PHONE_BASE = 23225000000, 23225900000, 23225950000

_ACTOR: Final = Actor.from_principal(
    Principal(kind="service", id="demo", name="Demo"), ip="127.0.0.1", request_id="demo"
)


def get_agent_phone_number(number: int) -> str:
    return f"+{_AGENT_PHONE_BASE + number + 1}"


def get_phone_number(resident: Resident) -> str:
    return f"+{_RESIDENT_PHONE_BASE + resident.number + 1}"


class Seeder:
    def __init__(self, services: Services, rng: Random, size: Size) -> None:
        self._services, self._settings = services, services.settings
        self._currency, self._pins = services.settings.currency, services.pin_verifier
        self._random = rng
        self._size = size
        self._major_unit = 10 ** money.get_decimals(self._currency)
        self._last_serial = 0

    async def _run(
        self,
        operation: Callable[Concatenate[Transaction, Actor, P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run an operation in its own transaction."""
        async with self._services.transaction() as tx:
            return await operation(tx, _ACTOR, *args, **kwargs)

    async def seed_country(self, last_day: date) -> Country:
        """Create everything that must exist before the first resident registers."""
        keyset_id = await self._upload_cards(last_day)
        agents = [await self._create_agent(number, []) for number in range(self._super_agent_count)]
        agents += [
            await self._create_agent(number, agents)
            for number in range(self._super_agent_count, self._size.agents)
        ]
        shops = [await self._create_shop(number) for number in range(self._size.merchants)]
        overdraft = money.format_decimal(250_000 * self._major_unit, self._currency)
        auth = self._services.authenticator
        created = await self._run(
            partners.create,
            NewPartner(name=country.PARTNER_NAME, overdraft_limit=overdraft),
            currency=self._currency,
            hmac_keys=auth.hmac_keys,
            webhook_secrets=auth.webhook_secrets,
        )
        residents = [
            self._build_resident(number, agents) for number in range(self._size.subscribers)
        ]
        return Country(
            residents=residents,
            agents=agents,
            shops=shops,
            partner_id=created.partner.id,
            signing_cards=signing_cards.SigningCards(keyset_id),
        )

    @property
    def _super_agent_count(self) -> int:
        return max(2, self._size.agents // 5)

    async def _upload_cards(self, last_day: date) -> int:
        """Upload the cards, half of which sign their taps, and return the ID of their keyset."""
        new_keyset = signing_cards.build_keyset(has_fixed_keys=self._settings.has_simulators)
        keyset = await self._run(
            keysets.create, new_keyset, vault=self._services.vault, signals=self._services.signals
        )
        count = int(self._size.subscribers * _CARDS_PER_RESIDENT)
        uids: dict[str, None] = {}
        while len(uids) < count:
            uids["04" + self._random.randbytes(6).hex()] = None
        rows = [
            f"{serial},{uid},{self._draw_expiry(number, last_day)},"
            f"{keyset.name if signing_cards.is_signing(serial) else ''}"
            for number, uid in enumerate(uids, 1)
            for serial in [_format_serial(number)]
        ]
        for start in range(0, count, _ROWS_PER_FILE):
            chunk = rows[start : start + _ROWS_PER_FILE]
            file = "\n".join(["Serial No.,MAC Address,Expiry Date,Keyset", *chunk])
            await upload.upload(
                self._services.transaction,
                _ACTOR,
                "text/csv",
                file.encode(),
                now=self._services.clock(),
                zone=self._settings.timezone,
            )
        return keyset.id

    def _draw_expiry(self, number: int, last_day: date) -> date:
        if number == EXPIRED_CARD + 1:
            return last_day - timedelta(days=10)
        return date(last_day.year + self._random.randint(2, 4), self._random.randint(1, 12), 28)

    async def _create_agent(self, number: int, super_agents: list[Agent]) -> Agent:
        person = country.draw_person(self._random)
        parent = super_agents[number % len(super_agents)] if super_agents else None
        pin = people.draw_pin(self._random)
        if number in (0, self._super_agent_count):
            pin = _SUB_AGENT_PIN if parent else SUPER_AGENT_PIN
        agent = Agent(
            name=person.name,
            business_name=None if parent else f"{person.last_name} Money Point",
            pin=pin,
            tier=3 if parent is None else self._random.choice((1, 1, 2)),
            parent=parent,
        )
        registration = AgentRegistration(
            agent_type=AgentType.SUB_AGENT if parent else AgentType.SUPER_AGENT,
            name=agent.name,
            business_name=agent.business_name,
            phone_number=get_agent_phone_number(number),
            pin=agent.pin,
            parent_agent_id=parent.public_id if parent else None,
            address=person.address,
            commission_tier=agent.tier,
        )
        registered = await self._run(
            agents.register, registration, pin_verifier=self._pins, currency=self._currency
        )
        agent.id = registered.id
        return agent

    async def _create_shop(self, number: int) -> Shop:
        merchant = country.get_merchant(number)
        email = f"{merchant.name.lower().replace(' ', '.')}@example.com"
        phone_number = f"+{_SHOP_PHONE_BASE + number + 1}"
        new_processor = NewProcessor(name=merchant.name, phone_number=phone_number, email=email)
        hmac_keys = self._services.authenticator.hmac_keys
        shop_terminals = []
        async with self._services.transaction() as tx:
            created = await processors.create(
                tx, _ACTOR, new_processor, currency=self._currency, hmac_keys=hmac_keys
            )
            for terminal_number in range(1, self._random.randint(1, 3) + 1):
                new_terminal = NewTerminal(name=f"Till {terminal_number}")
                added = await terminals.add(
                    tx, _ACTOR, created.processor.id, new_terminal, hmac_keys=hmac_keys
                )
                shop_terminals.append(Terminal(id=added.terminal.id, key=added.key))
        return Shop(
            merchant=merchant, id=created.processor.id, key=created.key, terminals=shop_terminals
        )

    def _build_resident(self, number: int, agents: list[Agent]) -> Resident:
        rng = self._random
        level = _KYC_LEVELS.get(number) or rng.choices((1, 2, 3), (78, 18, 4))[0]
        category = (
            _CATEGORIES.get(number)
            or rng.choices((SubscriberCategory.STANDARD, SubscriberCategory.VIP), (95, 5))[0]
        )
        has_salary = number == HERO or rng.random() < 0.4
        return Resident(
            number=number,
            person=_FIXED_PEOPLE.get(number) or country.draw_person(rng),
            pin=_FIXED_PINS.get(number) or people.draw_pin(rng),
            serial=self.next_serial(),
            category=category,
            kyc_level=level,
            activity=0.2 + rng.expovariate(1.25),
            salary=rng.randrange(900, 3_000, 50) * level * self._major_unit if has_salary else 0,
            agent=rng.choice(agents),
        )

    def next_serial(self) -> str:
        self._last_serial += 1
        return _format_serial(self._last_serial)

    async def register_residents(
        self, new_residents: list[Resident], existing_residents: list[Resident]
    ) -> None:
        """Register residents, set their KYC levels and link their cards and child cards."""
        child_cards_by_resident = [self._build_child_cards(resident) for resident in new_residents]
        registrations = [self._build_registration(resident) for resident in new_residents]
        for resident in new_residents:
            others = [*existing_residents, *new_residents]
            resident.friends = [
                friend for friend in self._random.choices(others, k=5) if friend is not resident
            ] or [others[0] if others[0] is not resident else others[1]]
        await _run_with_limit(
            self._register_resident(resident, registration, child_cards)
            for resident, registration, child_cards in zip(
                new_residents, registrations, child_cards_by_resident, strict=True
            )
        )

    def _build_registration(self, resident: Resident) -> Registration:
        rng, person = self._random, resident.person
        has_email, is_verified = rng.random() < 0.4, resident.kyc_level > 1
        mailbox = f"{person.first_name}.{person.last_name}{resident.number}"
        born_on = date(rng.randint(1955, 2004), rng.randint(1, 12), rng.randint(1, 28))
        return Registration(
            phone_number=get_phone_number(resident),
            first_name=person.first_name,
            last_name=person.last_name,
            pin=resident.pin,
            email=f"{mailbox.lower().replace(' ', '')}@example.com" if has_email else None,
            date_of_birth=born_on.isoformat(),
            address=person.address,
            id_type=rng.choice((IdType.NATIONAL_ID, IdType.PASSPORT)) if is_verified else None,
            id_number=f"DM{resident.number:07}" if is_verified else None,
            category=resident.category,
        )

    def _build_child_cards(self, resident: Resident) -> list[tuple[ChildCard, str]]:
        if resident.category != SubscriberCategory.VIP:
            return []
        return [
            (
                ChildCard(
                    serial=self.next_serial(),
                    pin=people.draw_pin(self._random),
                    daily_limit=self._random.choice((50, 100, 200)) * self._major_unit,
                ),
                self._random.choice(country.FIRST_NAMES),
            )
            for _ in range(self._random.randint(1, 2))
        ]

    async def _register_resident(
        self,
        resident: Resident,
        registration: Registration,
        child_cards: list[tuple[ChildCard, str]],
    ) -> None:
        registered = await self._run(
            subscribers.register, registration, pin_verifier=self._pins, settings=self._settings
        )
        resident.id, resident.account_id = registered.id, registered.account_id
        if resident.kyc_level > 1:
            update = SubscriberUpdate(kyc_level=resident.kyc_level, kyc_status=KycStatus.VERIFIED)
            await self._update(resident, update)
        await self.link_card(resident, resident.serial)
        for child, first_name in child_cards:
            body = NewChildCard(
                parent_subscriber_id=resident.public_id,
                card_serial=child.serial,
                parent_pin=resident.pin,
                child_pin=child.pin,
                daily_limit=money.format_decimal(child.daily_limit, registered.currency),
                child_name=f"{first_name} {resident.person.last_name}",
                child_relationship="child",
            )
            await self._run(
                cards.link_to_child, body, pin_verifier=self._pins, settings=self._settings
            )
            resident.child_cards.append(child)

    async def link_card(self, resident: Resident, serial: str) -> None:
        link = CardLink(subscriber_id=resident.public_id, card_serial=serial, pin=resident.pin)
        await self._run(cards.link, link, pin_verifier=self._pins, settings=self._settings)
        resident.serial = serial

    async def replace_lost_card(self, resident: Resident) -> str:
        """Block the resident's card as lost, link a new card, and return the lost card's serial."""
        lost = resident.serial
        await self._run(cards.block, lost, CardBlockReason.LOST, settings=self._settings)
        await self.link_card(resident, self.next_serial())
        return lost

    async def block(self, resident: Resident, reason: str) -> None:
        await self._run(subscribers.block, resident.id, reason)
        resident.is_active = False

    async def pay_batch(
        self,
        name: str,
        partner_id: int,
        receivers: Iterable[Resident],
        before_run: Callable[[], Awaitable[None]],
    ) -> None:
        """Pay each receiver a small grant in one batch."""
        lines = [(get_phone_number(receiver), "40") for receiver in receivers]
        await pay_batch(self._services, _ACTOR, name, partner_id, lines, before_run)

    async def open_bank_accounts(self, shop: Shop) -> None:
        await open_bank_accounts(self._services, _ACTOR, shop.id)

    async def close_day(self, day: date) -> None:
        await close_day(self._services, day)

    async def pay_out(self, shop: Shop) -> None:
        await pay_out(self._services, shop.id)

    async def ask_support(self, resident: Resident, text: str) -> None:
        message = NewSupportMessage(phone_number=get_phone_number(resident), text=text)
        await self._run(support.receive, message, vault=self._services.vault)

    async def undo_payments(self, hero: Resident) -> None:
        """Reverse, recall and dispute a recent payment, but none of the hero's."""
        await undo.create_examples(self._services, _ACTOR, excluded_account=hero.account_id)

    async def send_documents(self, resident: Resident, *types: KycDocumentType) -> None:
        """Upload KYC documents, which then wait for a review."""
        services = self._services
        for document_type in types:
            document = Document(services.new_id(), document_type, services.clock())
            image = draw_document(document_type, resident.person)
            sealed = await kyc_documents.seal_image(image, document.id, vault=services.vault)
            await self._run(kyc_documents.add, resident.id, document, sealed)

    async def restrict(self, resident: Resident) -> None:
        await self._update(resident, SubscriberUpdate(restricted=True))

    async def _update(self, resident: Resident, update: SubscriberUpdate) -> None:
        await self._run(subscribers.update, resident.id, update, settings=self._settings)


def _format_serial(number: int) -> str:
    return f"DEMO-{number:06}"


async def _run_with_limit(tasks: Iterable[Awaitable[None]]) -> None:
    semaphore = asyncio.Semaphore(_MAX_CONCURRENCY)

    async def run(task: Awaitable[None]) -> None:
        async with semaphore:
            await task

    async with asyncio.TaskGroup() as group:
        for task in tasks:
            group.create_task(run(task))
