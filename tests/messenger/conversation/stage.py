"""A person, a conversation and a model of the gateway, to play stories with."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from tapgate import money
from tapgate.images import EncodedImage
from tapgate.messenger.conversation import engine, words
from tapgate.messenger.conversation.state import Conversation, Step
from tapgate.messenger.model import calls
from tapgate.messenger.model.events import (
    Answered,
    Chose,
    Entered,
    Event,
    Meaning,
    Pictured,
    Refused,
    Said,
    Unreachable,
)
from tapgate.messenger.model.kinds import Command, Language
from tapgate.messenger.model.people import (
    Effect,
    ForgetRecipient,
    KeepRecipient,
    Person,
    ProvePhone,
    Setting,
    SpeakLanguage,
    Trust,
)
from tapgate.messenger.model.replies import AskPin, File, Offer, Reply
from tapgate.messenger.understanding import resolver

PHONE, PAYEE_PHONE, CARDLESS_PHONE = "+23276123456", "+23276222222", "+23276333333"
PIN, WRONG_PIN = "4907", "8316"
CODE = "604829"
NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PICTURE = EncodedImage("image/jpeg", b"jpeg")
MAX_TRIES = 3

Outcome = Answered | Refused | Unreachable


class Paid(msgspec.Struct, frozen=True):
    request_id: str
    card_serial: str
    amount: str


class Gateway:
    """Does what the gateway does, in memory: payments once per request id, PINs with a lock."""

    def __init__(self) -> None:
        self.subscriber: calls.Subscriber | None = calls.Subscriber(
            id="sub_me", first_name="Mariama", status="active", kyc_level=1, kyc_status="NONE"
        )
        self.pin = PIN
        self.failures = 0
        self.balance = 1_000_00
        self.cards = [
            calls.Card(serial="TG-0001", type="PARENT", status="ACTIVE", holder_name=None),
            calls.Card(serial="TG-0002", type="CHILD", status="BLOCKED", holder_name="Ibrahim"),
        ]
        self.paid: dict[str, tuple[calls.SendMoney, Outcome]] = {}
        self.asked: list[calls.Call] = []
        #: What is answered instead, once, to a kind of call.
        self.instead: dict[type, list[Outcome]] = {}
        #: The next calls of a kind are carried out but not answered.
        self.lost: list[type] = []

    @property
    def payments(self) -> list[Paid]:
        return [
            Paid(request_id, call.card_serial, call.amount)
            for request_id, (call, outcome) in self.paid.items()
            if isinstance(outcome, Answered)
        ]

    def answer(self, call: calls.Call) -> Outcome:
        self.asked.append(call)
        if self.instead.get(type(call)):
            return self.instead[type(call)].pop(0)
        outcome = self._answer(call)
        if type(call) in self.lost:
            self.lost.remove(type(call))
            return Unreachable(uncertain=True)
        return outcome

    def _answer(self, call: calls.Call) -> Outcome:
        match call:
            case calls.SendMoney():
                return self._send(call)
            case calls.LinkCard() | calls.UnblockCard() | calls.VerifyPin() | calls.ChangePin():
                old = call.old_pin if isinstance(call, calls.ChangePin) else call.pin
                return self._wrong(old) or Answered(result=self._with_pin(call))
        return Answered(result=self._read(call))

    def _send(self, call: calls.SendMoney) -> Outcome:
        if call.request_id in self.paid:
            before, outcome = self.paid[call.request_id]
            same = (before.card_serial, before.amount) == (call.card_serial, call.amount)
            return outcome if same else Refused(code="DUPLICATE_REQUEST")
        wrong = self._wrong(call.pin)
        if wrong is not None:
            return wrong
        outcome = self._receipt(call)
        self.paid[call.request_id] = (call, outcome)
        return outcome

    def _receipt(self, call: calls.SendMoney) -> Outcome:
        amount = money.parse(call.amount, "SLE")
        fee = money.apply_rate(amount, 1_500)
        if amount + fee > self.balance:
            return Refused(code="INSUFFICIENT_FUNDS")
        self.balance -= amount + fee
        return Answered(
            result=calls.Receipt(
                transaction_id=f"txn_{len(self.paid)}",
                status="completed",
                amount=money.format_money(amount, "SLE"),
                fee_amount=money.format_money(fee, "SLE"),
                new_balance=money.format_money(self.balance, "SLE"),
                recipient_name="Aminata K.",
            )
        )

    def _wrong(self, pin: str) -> Refused | None:
        if self.failures >= MAX_TRIES:
            return Refused(
                code="ACCOUNT_LOCKED", details={"locked_until": "2026-03-14T10:00:00.000Z"}
            )
        if pin == self.pin:
            self.failures = 0
            return None
        self.failures += 1
        left = MAX_TRIES - self.failures
        return Refused(code="INVALID_PIN", details={"attempts_remaining": left})

    def _with_pin(self, call: calls.Call) -> Any:
        match call:
            case calls.LinkCard(card_serial=serial):
                return calls.Card(serial=serial, type="PARENT", status="ACTIVE", holder_name=None)
            case calls.UnblockCard(card_serial=serial):
                return self._set(serial, "ACTIVE")
            case calls.ChangePin(new_pin=new_pin):
                self.pin = new_pin
        return True

    def _set(self, serial: str, status: str) -> calls.Card:
        card = next(card for card in self.cards if card.serial == serial)
        changed = msgspec.structs.replace(card, status=status)
        self.cards[self.cards.index(card)] = changed
        return changed

    def _read(self, call: calls.Call) -> Any:  # noqa: PLR0911, PLR0912 - one per call
        match call:
            case calls.FindSubscriber():
                return self.subscriber
            case calls.Register(first_name=first_name, pin=pin):
                self.pin = pin
                self.subscriber = calls.Subscriber(
                    id="sub_me", first_name=first_name, status="active", kyc_level=1, kyc_status=""
                )
                return self.subscriber
            case calls.ReadBalance():
                shown = money.format_decimal(self.balance, "SLE")
                return calls.Balance(balance=shown, available=shown, held="0.00", currency="SLE")
            case calls.ReadLimits(kyc_level=level):
                return calls.Limits(
                    kyc_level=level,
                    currency="SLE",
                    max_balance="50000.00",
                    max_transaction="5000.00",
                    daily_limit="10000.00",
                    monthly_limit="100000.00",
                )
            case calls.FindCard(card_serial=serial) if serial.startswith("AM-"):
                return calls.Payee(name="Aminata K.", card_serial=serial, subscriber_id="sub_her")
            case calls.FindCard(card_serial="TG-0001"):
                return calls.Payee(name="Mariama S.", card_serial="TG-0001", subscriber_id="sub_me")
            case calls.FindPayee(phone=phone) if phone == PAYEE_PHONE:
                return calls.Payee(
                    name="Aminata K.", card_serial="AM-1001", subscriber_id="sub_her"
                )
            case calls.FindPayee(phone=phone) if phone == CARDLESS_PHONE:
                return calls.Payee(name="Foday B.", card_serial=None, subscriber_id="sub_him")
            case calls.FindCard() | calls.FindPayee():
                return None
            case calls.Quote(amount=amount):
                return self._quote(money.parse(amount, "SLE"))
            case calls.ReadHistory(limit=limit):
                return self._history(limit)
            case calls.MakeStatement(from_date=first, to_date=last):
                return calls.Statement(link="https://x.test/s", from_date=first, to_date=last)
            case calls.ReadCards():
                return list(self.cards)
            case calls.BlockCard(card_serial=serial, reason=reason):
                return self._set(serial, "BLOCKED" if reason == "customer_request" else "LOST")
            case calls.AddDocument():
                return "PENDING"
            case calls.CheckCode(code=code):
                return code == CODE
        return True

    def _quote(self, amount: int) -> calls.Quoted:
        fee = money.apply_rate(amount, 1_500)
        enough = amount + fee <= self.balance
        return calls.Quoted(
            amount=money.format_decimal(amount, "SLE"),
            fee_amount=money.format_decimal(fee, "SLE"),
            total=money.format_decimal(amount + fee, "SLE"),
            currency="SLE",
            allowed=enough,
            reasons=() if enough else ("INSUFFICIENT_FUNDS",),
        )

    def _history(self, limit: int) -> list[calls.Movement]:
        return [
            calls.Movement(
                transaction_id=f"txn_{n}",
                type="transfer_p2p",
                status="completed" if n else "under_review",
                direction="debit" if n % 2 else "credit",
                amount="1234.50",
                fee_amount="0.00",
                currency="SLE",
                other="Aminata K." if n else None,
                at=NOW - timedelta(days=n),
            )
            for n in range(limit)
        ]


class Story:
    """Plays events as the service does: calls are answered at once, then all is kept."""

    def __init__(self, language: Language | None = "en", **setting: Any) -> None:
        self.gateway = Gateway()
        self.person = Person(address=PHONE, phone=PHONE, language=language)
        self.conversation = Conversation()
        self.setting = {"pins": "text", "documents": True, **setting}
        self.count = 0
        self.replies: list[Reply] = []
        self.effects: list[Effect] = []
        self.steps: list[Step] = []

    def __call__(self, event: Event | str) -> str:
        """What is answered, as text."""
        if isinstance(event, str):
            event = said(event)
        self.replies, self.effects, self.steps = [], [], []
        self.conversation = self.play(event)
        for effect in self.effects:
            self.person = after(self.person, effect)
        return self.text

    def play(self, event: Event) -> Conversation:
        self.count += 1
        conversation, setting = self.conversation, self.place()
        for _ in range(12):
            step = engine.step(self.person, conversation, event, setting)
            self.steps.append(step)
            self.replies += step.replies
            self.effects += step.effects
            conversation = kept(step.conversation)
            if step.call is None:
                return conversation
            event = self.gateway.answer(step.call)
        raise AssertionError("it never stops calling")

    def place(self) -> Setting:
        setting = {"now": NOW, "fresh": f"op-{self.count}", "currency": "SLE", **self.setting}
        return Setting(**setting)

    def tap(self, value: str, *, late: bool = False) -> str:
        """The option of the last offer whose id begins so."""
        return self(Chose(id=self.option(value), late=late))

    def option(self, value: str) -> str:
        offer = self.offer
        assert offer is not None
        return next(o.id for o in offer.options if o.id.partition("#")[0] == value)

    def enter(self, pin: str | None = PIN, new_pin: str | None = None) -> str:
        form = next(reply for reply in reversed(self.replies) if isinstance(reply, AskPin))
        return self(Entered(operation=form.operation, pin=pin, new_pin=new_pin))

    def picture(self) -> str:
        return self(Pictured(picture=PICTURE))

    @property
    def offer(self) -> Offer | None:
        return self.conversation.offer

    @property
    def text(self) -> str:
        return "\n".join(words_of(reply) for reply in self.replies)

    def calls(self, kind: type) -> list[Any]:
        return [call for call in self.gateway.asked if isinstance(call, kind)]


def said(text: str | None, command: Command | None = None, **more: Any) -> Said:
    """With the meaning that an exact word has, unless another is given."""
    if command is None and text is not None:
        command = words.command(text)
    return Said(text=text, meaning=Meaning(command=command), **more)


def spoken(text: str) -> Said:
    """With the meaning that the words have for the resolver."""
    return Said(text=text, meaning=resolver.resolve(text, None))


def kept(conversation: Conversation) -> Conversation:
    return msgspec.json.decode(msgspec.json.encode(conversation), type=Conversation)


def words_of(reply: Reply) -> str:
    if isinstance(reply, File):
        return f"{reply.caption} {reply.link}"
    if isinstance(reply, Offer):
        return "\n".join([reply.text, *(option.title for option in reply.options)])
    return reply.text


def after(person: Person, effect: Effect) -> Person:
    change: Callable[..., Person] = lambda **fields: msgspec.structs.replace(person, **fields)  # noqa: E731
    match effect:
        case SpeakLanguage(language=language):
            return change(language=language)
        case Trust(trusted=trusted):
            return change(trusted=trusted)
        case ProvePhone(phone=phone):
            return change(phone=phone)
        case KeepRecipient(recipient=recipient):
            return change(recipients=(*person.recipients, recipient))
        case ForgetRecipient(card_serial=serial):
            kept = tuple(r for r in person.recipients if r.card_serial != serial)
            return change(recipients=kept)
