"""Whatever is said, tapped, entered, repeated, lost or cut off, in any order."""

import re

import msgspec
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from messenger.conversation.stage import (
    CODE,
    PAYEE_PHONE,
    PHONE,
    PICTURE,
    PIN,
    WRONG_PIN,
    Gateway,
    Outcome,
    Story,
    said,
    words_of,
)
from tapgate.messenger.conversation import keywords
from tapgate.messenger.conversation.commands import SCRIPTS
from tapgate.messenger.conversation.state import Conversation, EngineOutput
from tapgate.messenger.conversation.steps import AskStep, ConfirmStep, PinStep, RequestStep
from tapgate.messenger.model import gateway_requests
from tapgate.messenger.model.common import COMMANDS, CONVERSATION_TIMEOUT_SECONDS
from tapgate.messenger.model.events import (
    Event,
    FormClosed,
    FormSubmitted,
    GatewayUnreachable,
    ImageReceived,
    ImageRejected,
    Intent,
    NumberChanged,
    OptionChosen,
    RequestRejected,
    TextMessage,
    UnsupportedMessage,
)
from tapgate.messenger.model.people import Person
from tapgate.messenger.model.replies import OptionList, PinRequest

TEXTS = st.sampled_from(
    [
        *("menu", "help", "balance", "send money", "history", "statement", "cards", "kyc"),
        *("limits", "language", "register", "yes", "no", "cancel", "more", "oui", "non"),
        *("AM-1001", "AM-2002", "TG-0001", "XX-9999", PAYEE_PHONE, PHONE, "076333333"),
        *("5", "17.50", "100", "50000", "0", "1", "2", "3", "send 20 to AM-1001"),
        *("hello", "thank you", "ok", "bye", "i forgot my pin", "what are the fees", "12345"),
        *("send to am-1001 10", "send 8 to mum", "selfie", "lost", "my phone was stolen"),
        *("Aminata Kamara", "last 10 days", CODE, "", "  ", "blah", "français", "{x}", "*" * 50),
    ]
)
MEANINGS = st.one_of(
    st.just(Intent()),
    st.builds(
        Intent,
        command=st.sampled_from(COMMANDS),
        candidates=st.lists(st.sampled_from(COMMANDS), max_size=4).map(tuple),
        language=st.sampled_from([None, "en", "fr"]),
    ),
)
OTHER = st.sampled_from(
    [
        FormClosed(),
        UnsupportedMessage(kind="sticker"),
        ImageRejected(reason="is damaged"),
        ImageReceived(image=PICTURE),
        TextMessage(text=None),
    ]
)
UNCLEAR = [
    TextMessage(text="yes", intent=Intent(command="yes"), is_late=True),
    TextMessage(text="1", is_late=True),
    TextMessage(text="sure thing", intent=Intent(command="yes")),
]
#: What comes in between.
STUMBLES = st.one_of(
    OTHER,
    TEXTS.map(said),
    st.builds(TextMessage, text=st.sampled_from(["yes", "1", "2"]), is_late=st.just(True)),
    st.sampled_from(["yes", "no", "cancel", "balance", "30", "AM-2002"]).map(said),
    st.just(NumberChanged()),
)
TROUBLE = st.sampled_from(
    [
        GatewayUnreachable(uncertain=False),
        GatewayUnreachable(uncertain=True),
        *(
            RequestRejected(code=code)
            for code in ("INTERNAL_ERROR", "SERVICE_UNAVAILABLE", "COMPLIANCE_REJECTED", "NEW_ONE")
        ),
    ]
)
CALLS = st.sampled_from([*gateway_requests.GatewayRequest.__args__])
PIN_CALLS = (
    gateway_requests.SendMoney,
    gateway_requests.LinkCard,
    gateway_requests.UnblockCard,
    gateway_requests.VerifyPin,
    gateway_requests.ChangePin,
)

#: What was shown for a yes: the card and the amount, in either language.
SHOWN = re.compile(r"(?:Card|Carte) ?: (\S+)\n(?:Amount|Montant) ?: \*([0-9,.]+) SLE\*")


class Watched(Gateway):
    """Sees to it that money is only asked for as it was confirmed."""

    def __init__(self) -> None:
        super().__init__()
        self.accepted: dict[str, tuple[str, str]] = {}

    def answer(self, call: gateway_requests.GatewayRequest) -> Outcome:
        if isinstance(call, gateway_requests.SendMoney):
            card, amount = self.accepted[call.request_id]
            assert (call.card_serial, call.amount) == (card, amount)
        return super().answer(call)


class AnyStory(RuleBasedStateMachine):
    @initialize(
        language=st.sampled_from([None, "en", "fr"]),
        pins=st.sampled_from(["text", "text", "form", "form", "none"]),
        documents=st.booleans(),
        hides=st.sampled_from([False, False, False, True]),
        registered=st.sampled_from([True, True, True, False]),
    )
    def begin(self, language, pins, documents, hides, registered):
        self.story = Story(language, pin_entry_mode=pins, can_send_documents=documents)
        self.story.gateway = self.gateway = Watched()
        if hides:
            self.story.person = Person(address="user:U1", phone=None, language=language)
        if not registered:
            self.gateway.subscriber = None
        #: What was shown to be confirmed, by the operation it would be.
        self.shown: dict[str, tuple[str, str]] = {}
        self.tappable = ["yes#1", "cmd:yes"]
        self.operations = ["op-none"]
        self.last: Event = FormClosed()

    # What a person does

    @rule(text=TEXTS, meaning=MEANINGS, late=st.booleans(), dies=st.booleans())
    def says(self, text, meaning, late, dies):
        command = keywords.match_command(text) or meaning.command
        meaning = msgspec.structs.replace(meaning, command=command)
        self.happens(TextMessage(text=text, intent=meaning, is_late=late), dies=dies)

    @rule(
        amount=st.sampled_from(["5", "20"]),
        card=st.sampled_from(["AM-1001", "AM-2002"]),
        pins=st.lists(st.sampled_from([PIN, PIN, WRONG_PIN]), min_size=1, max_size=3),
        stumbles=st.lists(st.tuples(st.integers(1, 7), STUMBLES), max_size=2),
        dies_at=st.integers(0, 12),
        is_lost=st.booleans(),
        unclear=st.sampled_from([None, *UNCLEAR]),
    )
    def pays(self, amount, card, pins, stumbles, dies_at, is_lost, unclear):
        """Chance alone seldom gets so far. What comes in between may lead anywhere else."""
        script: list[str] = ["cancel", "send money", card, amount, "yes", *pins]
        events = [*enumerate(script, 1), *stumbles]
        for position, what in sorted(events, key=lambda pair: pair[0]):
            if is_lost and position == 6:
                self.gateway.lost = [gateway_requests.SendMoney]
            if what == "yes" and unclear is not None:
                self.happens(unclear)
            if what == "yes" and self.story.conversation.stage == "confirm":
                self.happens(OptionChosen(id=self.story.option("yes"), is_late=True))
            if what not in (PIN, WRONG_PIN):
                self.happens(
                    said(what) if isinstance(what, str) else what, dies=position == dies_at
                )
            elif self.story.conversation.is_awaiting_pin:
                self.happens(self.pin_here(what), dies=position == dies_at)

    def pin_here(self, pin: str) -> Event:
        if self.story.setting["pin_entry_mode"] == "text":
            return TextMessage(text=pin)
        return FormSubmitted(operation=self.story.conversation.operation, pin=pin)

    @rule(choice=st.integers(0, 200), late=st.booleans(), dies=st.booleans())
    def taps(self, choice, late, dies):
        """Mostly what was shown last."""
        ids = self.tappable[-6:] if choice % 4 else self.tappable
        self.happens(OptionChosen(id=ids[choice % len(ids)], is_late=late), dies=dies)

    @precondition(lambda self: self.story.conversation.piece != "amount")
    @rule(
        text=st.sampled_from([PIN, PIN, WRONG_PIN, f"{PIN} {PIN}", f"{PIN} {WRONG_PIN}"]),
        late=st.booleans(),
        dies=st.booleans(),
    )
    def says_pin(self, text, late, dies):
        paid = len(self.gateway.payments)
        awaited = (
            self.story.conversation.is_awaiting_pin
            and self.story.setting["pin_entry_mode"] == "text"
        )
        tried = len(self.tries())
        self.happens(TextMessage(text=text, is_late=late), dies=dies)
        if not awaited or late:
            assert len(self.gateway.payments) == paid
            assert len(self.tries()) == tried

    @rule(
        choice=st.integers(0, 20),
        pin=st.sampled_from([PIN, PIN, WRONG_PIN, "12", None]),
        new_pin=st.sampled_from([None, PIN, WRONG_PIN, "12345"]),
        dies=st.booleans(),
    )
    def enters(self, choice, pin, new_pin, dies):
        operations = self.operations[-1:] if choice % 3 else self.operations
        operation = operations[choice % len(operations)]
        pending = self.story.conversation
        tried = len(self.tries())
        self.happens(FormSubmitted(operation=operation, pin=pin, new_pin=new_pin), dies=dies)
        if pending.operation != operation or not pending.is_awaiting_pin:
            assert len(self.tries()) == tried

    @rule(event=OTHER)
    def does_something_else(self, event):
        self.happens(event)

    @precondition(lambda self: self.story.person.phone is not None)
    @rule()
    def changes_number(self):
        self.happens(NumberChanged())
        assert not self.story.person.trusted
        assert self.story.conversation.operation is None

    @precondition(
        lambda self: (
            not (
                isinstance(self.last, TextMessage)
                and self.last.text is not None
                and PIN in self.last.text
                and self.story.conversation.piece == "amount"
            )
        )
    )
    @rule()
    def does_it_again(self):
        self.happens(self.last)

    @rule()
    def is_silent_for_long(self):
        before = self.story.conversation
        assert CONVERSATION_TIMEOUT_SECONDS
        self.story.conversation = Conversation(lapsed=before.has_money_in_progress)

    # What happens elsewhere

    @rule(kind=CALLS, outcome=TROUBLE)
    def gateway_will_refuse(self, kind, outcome):
        self.gateway.instead = {kind: [outcome]}

    @rule(kind=st.sampled_from(PIN_CALLS))
    def gateway_will_not_be_heard(self, kind):
        self.gateway.lost = [kind]

    @rule()
    def gateway_forgives(self):
        self.gateway.failures = 0
        self.gateway.balance = 1_000_00
        self.gateway.instead = {}
        self.gateway.lost = []
        self.gateway.pin = PIN

    @rule(pins=st.sampled_from(["text", "form"]))
    def goes_elsewhere(self, pins):
        self.story.setting["pin_entry_mode"] = pins

    # What must hold

    def happens(self, event: Event, *, dies: bool = False) -> None:
        if dies:
            # The gateway has done what it was asked, nobody has kept that, and it is done again.
            self.story.replies, self.story.effects, self.story.steps = [], [], []
            self.story.play(event)
        before = self.story.conversation
        self.story(event)
        self.last = event
        self.note(before)
        self.check(event, before)

    def note(self, before: Conversation) -> None:
        now = self.story.conversation
        for reply in self.story.replies:
            if isinstance(reply, OptionList):
                self.tappable += [option.id for option in reply.options] + [reply.more.id]
            if isinstance(reply, PinRequest):
                self.operations.append(reply.operation)
        if now.command == "send" and now.stage == "confirm" and self.story.replies:
            (card, amount) = SHOWN.search(self.story.replies[-1].text).groups()
            self.shown[now.operation] = (card, amount.replace(",", ""))
        if now.command == "send" and now.piece == "sent" and before.stage == "confirm":
            assert before.operation == now.operation
            self.gateway.accepted[now.operation] = self.shown[now.operation]

    def check(self, event: Event, before: Conversation) -> None:
        assert self.story.replies or isinstance(event, FormClosed)
        if before.stage == "confirm" and self.story.conversation.facts.get("confirmed"):
            assert is_clear_yes(event)
        for step in self.story.steps:
            check_no_secret(step)
            check_stage(before, step)
            check_replies(step)
            before = step.conversation

    def teardown(self) -> None:
        if hasattr(self, "gateway"):
            event(f"payments: {len(self.gateway.payments)}")

    def tries(self) -> list[gateway_requests.GatewayRequest]:
        return [call for call in self.gateway.asked if isinstance(call, PIN_CALLS)]

    @invariant()
    def money_moved_as_confirmed(self):
        if not hasattr(self, "gateway"):
            return
        for paid in self.gateway.payments:
            assert self.gateway.accepted[paid.request_id] == (paid.card_serial, paid.amount)


def is_clear_yes(event: Event) -> bool:
    if isinstance(event, TextMessage):
        return not event.is_late and (
            keywords.match_command(event.text) == "yes" or event.text == "1"
        )
    return isinstance(event, OptionChosen) and not event.is_late


def check_no_secret(step: EngineOutput) -> None:
    kept = [msgspec.json.encode(step.conversation).decode(), repr(step.request), repr(step.effects)]
    for text in [*kept, *map(words_of, step.replies)]:
        for secret in (PIN, WRONG_PIN):
            assert secret not in text


def check_stage(before: Conversation, step: EngineOutput) -> None:
    """Where a conversation stands, and how it may have got there."""
    now = step.conversation
    piece = SCRIPTS[now.command].get_step(now.piece) if now.command else None
    assert (now.stage == "executing") == (step.request is not None)
    match now.stage:
        case "idle":
            assert (now.command, now.piece, now.operation, now.facts) == (None, None, None, {})
        case "collecting":
            assert isinstance(piece, AskStep | RequestStep)
        case "confirm":
            assert isinstance(piece, ConfirmStep)
            assert now.operation
            assert now.offer
        case "await_pin":
            assert isinstance(piece, PinStep)
            assert now.operation
    if piece is not None and piece.name == "sent" and now.command == "send":
        # A payment's PIN is asked for after a yes, and then for nothing else.
        assert (before.stage, before.piece) == ("confirm", "confirmed") or before.piece == "sent"
        assert before.operation == now.operation
    if isinstance(step.request, gateway_requests.SendMoney):
        assert before.stage == "await_pin"
        assert step.request.request_id == before.operation
    if now.uncertain:
        assert now.command == "send"
        assert now.piece == "sent"


def check_replies(step: EngineOutput) -> None:
    for reply in step.replies:
        assert len(words_of(reply)) > 0
        if not isinstance(reply, OptionList):
            continue
        assert len(reply.text) <= 1024
        ids = [option.id for option in reply.options]
        assert len(set(ids)) == len(ids) > 0
        longest = 20 if len(ids) <= 3 else 24
        for option in (*reply.options, reply.more):
            assert 0 < len(option.title) <= longest
            assert len(option.description) <= 72
            assert len(option.id) <= 200


TestAnyStory = AnyStory.TestCase
TestAnyStory.settings = settings(
    max_examples=150,
    stateful_step_count=40,
)
