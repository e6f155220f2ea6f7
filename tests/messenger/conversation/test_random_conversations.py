"""Stateful property test: random messages, taps, forms, replays, lost responses and crashes."""

import re

import msgspec
from hypothesis import event, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from builders.conversation import (
    CODE,
    IMAGE,
    OPERATIONS,
    PAYEE_PHONE,
    PHONE,
    PIN,
    WRONG_PIN,
    ConversationDriver,
    FakeGateway,
    build_text_message,
    format_reply,
    get_request_kind,
)
from examples import limit_examples
from tapgate.messenger import card_requests, gateway_requests
from tapgate.messenger.conversation.commands import SCRIPTS
from tapgate.messenger.conversation.state import Conversation, EngineOutput
from tapgate.messenger.conversation.steps import AskStep, ConfirmStep, PinStep, RequestStep
from tapgate.messenger.gateway_requests import ClientRequest, GatewayRequest
from tapgate.messenger.model import (
    COMMANDS,
    CONVERSATION_TIMEOUT_SECONDS,
    Agent,
    Event,
    FormClosed,
    FormSubmitted,
    GatewayUnreachable,
    ImageReceived,
    ImageRejected,
    Intent,
    NumberChanged,
    OptionChosen,
    OptionList,
    Person,
    PinRequest,
    RequestOutcome,
    RequestRejected,
    TextMessage,
    UnsupportedMessage,
)
from tapgate.messenger.understanding import resolver

TEXTS = st.sampled_from(
    [
        *("menu", "help", "balance", "send money", "history", "statement", "cards", "kyc"),
        *("limits", "language", "register", "yes", "no", "cancel", "more", "oui", "non"),
        *("AM-1001", "AM-2002", "TG-0001", "XX-9999", PAYEE_PHONE, PHONE, "076333333"),
        *("5", "17.50", "100", "50000", "0", "1", "2", "3", "send 20 to AM-1001"),
        *("hello", "thank you", "ok", "bye", "i forgot my pin", "what are the fees", "12345"),
        *("send to am-1001 10", "send 8 to mum", "selfie", "lost", "my phone was stolen"),
        *("agent menu", "float", "cash in", "cash out", "commission", "own wallet"),
        *("request float", "float requests", "confirm cash-out"),
        *("Aminata Kamara", "last 10 days", CODE, "", "  ", "blah", "français", "{x}", "*" * 50),
    ]
)
INTENTS = st.one_of(
    st.just(Intent()),
    st.builds(
        Intent,
        command=st.sampled_from(COMMANDS),
        candidates=st.lists(st.sampled_from(COMMANDS), max_size=4).map(tuple),
        language=st.sampled_from([None, "en", "fr"]),
    ),
)
OTHER_EVENTS = st.sampled_from(
    [
        FormClosed(),
        UnsupportedMessage(kind="sticker"),
        ImageRejected(reason="is damaged"),
        ImageReceived(image=IMAGE),
        TextMessage(text=None),
    ]
)
UNCLEAR_CONFIRMATIONS = [
    TextMessage(text="yes", intent=Intent(command="yes"), is_late=True),
    TextMessage(text="1", is_late=True),
    TextMessage(text="sure thing", intent=Intent(command="yes")),
]
#: Events injected into a scripted payment.
INTERRUPTIONS = st.one_of(
    OTHER_EVENTS,
    TEXTS.map(build_text_message),
    st.builds(TextMessage, text=st.sampled_from(["yes", "1", "2"]), is_late=st.just(True)),
    st.sampled_from(["yes", "no", "cancel", "balance", "30", "AM-2002"]).map(build_text_message),
    st.just(NumberChanged()),
)
GATEWAY_FAILURES = st.sampled_from(
    [
        GatewayUnreachable(uncertain=False),
        GatewayUnreachable(uncertain=True),
        *(
            RequestRejected(code=code)
            for code in ("INTERNAL_ERROR", "SERVICE_UNAVAILABLE", "COMPLIANCE_REJECTED", "NEW_ONE")
        ),
    ]
)
REQUEST_KINDS = st.sampled_from(
    [
        *OPERATIONS,
        *(kind for kind in GatewayRequest.__subclasses__() if kind is not ClientRequest),
    ]
)
PIN_REQUESTS = (
    "agents.cash_in",
    "agents.pay_out_commission",
    "cash_out_requests.confirm_cash_out",
    "cash_out_requests.request_cash_out",
    "float_requests.fund_by_transfer",
    gateway_requests.SendMoney,
    "cards.link",
    card_requests.UnblockCard,
    "subscribers.verify_pin",
    "subscribers.change_pin",
)

#: Card and amount as displayed in the confirmation, in either language.
CONFIRMATION_PATTERN = re.compile(
    r"(?:Card|Carte|Phone|Téléphone) ?: (\S+)\n(?:Amount|Montant) ?: \*([0-9,.\xa0]+)\sSLE\*"
)


class ConfirmingGateway(FakeGateway):
    """Gateway that asserts that every payment matches its confirmation."""

    def __init__(self) -> None:
        super().__init__()
        self.confirmed: dict[str, tuple[str, str]] = {}

    def handle(self, request: gateway_requests.GatewayRequest) -> RequestOutcome:
        if isinstance(request, gateway_requests.SendMoney):
            card, amount = self.confirmed[request.request_id]
            assert (request.payee, request.amount) == (card, amount)
        return super().handle(request)


class RandomConversation(RuleBasedStateMachine):
    @initialize(
        language=st.sampled_from([None, "en", "fr"]),
        pins=st.sampled_from(["text", "text", "form", "form", "none"]),
        documents=st.booleans(),
        hides_number=st.sampled_from([False, False, False, True]),
        registered=st.sampled_from([True, True, True, False]),
        is_agent=st.booleans(),
    )
    def begin(self, language, pins, documents, hides_number, registered, is_agent):
        self.chat = ConversationDriver(language, pin_entry_mode=pins, can_send_documents=documents)
        self.chat.gateway = self.gateway = ConfirmingGateway()
        if hides_number:
            self.chat.person = Person(address="user:U1", phone=None, language=language)
        if not registered:
            self.gateway.subscriber = None
        if is_agent:
            self.gateway.agent = Agent(id="agt_me", name="Kissy Kiosk")
        #: Card and amount displayed for confirmation, by operation.
        self.confirmations: dict[str, tuple[str, str]] = {}
        self.known_option_ids = ["yes#1", "cmd:yes"]
        self.operations = ["op-none"]
        self.last: Event = FormClosed()

    # The person's actions

    @rule(text=TEXTS, intent=INTENTS, late=st.booleans(), crash=st.booleans())
    def send_text(self, text, intent, late, crash):
        command = resolver.match_command(text) or intent.command
        intent = msgspec.structs.replace(intent, command=command)
        self.handle_event(TextMessage(text=text, intent=intent, is_late=late), crash=crash)

    @rule(
        amount=st.sampled_from(["5", "20"]),
        card=st.sampled_from(["AM-1001", "AM-2002"]),
        pins=st.lists(st.sampled_from([PIN, PIN, WRONG_PIN]), min_size=1, max_size=3),
        interruptions=st.lists(st.tuples(st.integers(1, 7), INTERRUPTIONS), max_size=2),
        crash_at=st.integers(0, 12),
        loses_response=st.booleans(),
        unclear=st.sampled_from([None, *UNCLEAR_CONFIRMATIONS]),
    )
    def send_money(self, amount, card, pins, interruptions, crash_at, loses_response, unclear):
        """Follow a payment script, because random events rarely complete a payment."""
        script: list[str] = ["cancel", "send money", card, amount, "yes", *pins]
        events = [*enumerate(script, 1), *interruptions]
        for position, action in sorted(events, key=lambda pair: pair[0]):
            if loses_response and position == 6:
                self.gateway.lost_responses = [gateway_requests.SendMoney]
            if action == "yes" and unclear is not None:
                self.handle_event(unclear)
            if action == "yes" and self.chat.conversation.stage == "confirm":
                self.handle_event(OptionChosen(id=self.chat.get_option_id("yes"), is_late=True))
            if action not in (PIN, WRONG_PIN):
                self.handle_event(
                    build_text_message(action) if isinstance(action, str) else action,
                    crash=position == crash_at,
                )
            elif self.chat.conversation.is_awaiting_pin:
                self.handle_event(self.build_pin_event(action), crash=position == crash_at)

    @precondition(lambda self: self.gateway.agent is not None)
    @rule(
        script=st.sampled_from(
            [
                ("cash in", PAYEE_PHONE, "100", "yes", PIN, PIN),
                ("cash out", "AM-1001", "40", "yes", PIN),
                ("confirm cash-out", "yes", PIN, PIN),
                ("confirm cash-out", "no"),
                ("commission", "yes", PIN),
                ("request float", "300", "yes"),
            ]
        ),
        interruption=st.one_of(st.none(), st.tuples(st.integers(1, 5), INTERRUPTIONS)),
        crash_at=st.integers(0, 8),
        loses_response=st.sampled_from(
            [None, "agents.cash_in", "cash_out_requests.confirm_cash_out"]
        ),
    )
    def serve_customer(self, script, interruption, crash_at, loses_response):
        """Follow one of an agent's scripts, or the customer's answer."""
        events = [*enumerate(("cancel", "agent menu", *script))]
        if loses_response is not None:
            self.gateway.lost_responses = [loses_response]
        for position, action in sorted(
            events if interruption is None else [*events, interruption], key=lambda pair: pair[0]
        ):
            if action == PIN and not self.chat.conversation.is_awaiting_pin:
                continue
            event = (
                self.build_pin_event(action)
                if action == PIN
                else build_text_message(action)
                if isinstance(action, str)
                else action
            )
            self.handle_event(event, crash=position == crash_at)

    @invariant()
    def float_equals_the_model(self):
        """Each key acts once: cash-ins, cash-outs and paid commission add up to the float."""
        store = self.gateway.float
        earned = sum(amount // 100 for amount in store.cash_ins)
        paid_out = earned - store.commission
        assert paid_out >= 0
        expected = 2_000_00 - sum(store.cash_ins) + sum(store.cash_outs) + paid_out
        assert store.balance == expected

    def build_pin_event(self, pin: str) -> Event:
        if self.chat.settings["pin_entry_mode"] == "text":
            return TextMessage(text=pin)
        return FormSubmitted(operation=self.chat.conversation.operation, pin=pin)

    @rule(choice=st.integers(0, 200), late=st.booleans(), crash=st.booleans())
    def choose_option(self, choice, late, crash):
        """Choose an option, usually one of those displayed last."""
        ids = self.known_option_ids[-6:] if choice % 4 else self.known_option_ids
        self.handle_event(OptionChosen(id=ids[choice % len(ids)], is_late=late), crash=crash)

    @precondition(lambda self: self.chat.conversation.step != "amount")
    @rule(
        text=st.sampled_from([PIN, PIN, WRONG_PIN, f"{PIN} {PIN}", f"{PIN} {WRONG_PIN}"]),
        late=st.booleans(),
        crash=st.booleans(),
    )
    def send_pin_text(self, text, late, crash):
        payment_count = len(self.gateway.payments)
        is_pin_expected = (
            self.chat.conversation.is_awaiting_pin
            and self.chat.settings["pin_entry_mode"] == "text"
        )
        request_count = len(self.list_pin_requests())
        self.handle_event(TextMessage(text=text, is_late=late), crash=crash)
        if not is_pin_expected or late:
            assert len(self.gateway.payments) == payment_count
            assert len(self.list_pin_requests()) == request_count

    @rule(
        choice=st.integers(0, 20),
        pin=st.sampled_from([PIN, PIN, WRONG_PIN, "12", None]),
        new_pin=st.sampled_from([None, PIN, WRONG_PIN, "12345"]),
        crash=st.booleans(),
    )
    def submit_pin_form(self, choice, pin, new_pin, crash):
        operations = self.operations[-1:] if choice % 3 else self.operations
        operation = operations[choice % len(operations)]
        pending = self.chat.conversation
        request_count = len(self.list_pin_requests())
        self.handle_event(FormSubmitted(operation=operation, pin=pin, new_pin=new_pin), crash=crash)
        if pending.operation != operation or not pending.is_awaiting_pin:
            assert len(self.list_pin_requests()) == request_count

    @rule(event=OTHER_EVENTS)
    def send_other_event(self, event):
        self.handle_event(event)

    @precondition(lambda self: self.chat.person.phone is not None)
    @rule()
    def change_number(self):
        self.handle_event(NumberChanged())
        assert not self.chat.person.trusted
        assert self.chat.conversation.operation is None

    @precondition(
        lambda self: (
            not (
                isinstance(self.last, TextMessage)
                and self.last.text is not None
                and PIN in self.last.text
                and self.chat.conversation.step == "amount"
            )
        )
    )
    @rule()
    def replay_last_event(self):
        self.handle_event(self.last)

    @rule()
    def expire_conversation(self):
        assert CONVERSATION_TIMEOUT_SECONDS
        before = self.chat.conversation
        is_sending = before.command == "send" and before.stage != "idle"
        self.chat.conversation = Conversation(lapsed=is_sending)

    # External conditions

    @rule(kind=REQUEST_KINDS, outcome=GATEWAY_FAILURES)
    def make_gateway_fail(self, kind, outcome):
        self.gateway.overrides = {kind: [outcome]}

    @rule(kind=st.sampled_from(PIN_REQUESTS))
    def lose_gateway_response(self, kind):
        self.gateway.lost_responses = [kind]

    @rule()
    def reset_gateway(self):
        self.gateway.failures = 0
        self.gateway.balance = 1_000_00
        self.gateway.overrides = {}
        self.gateway.lost_responses = []
        self.gateway.pin = PIN

    @rule(pins=st.sampled_from(["text", "form"]))
    def switch_pin_mode(self, pins):
        self.chat.settings["pin_entry_mode"] = pins

    # Properties

    def handle_event(self, event: Event, *, crash: bool = False) -> None:
        if crash:
            # Simulate a crash after the gateway requests but before the save; replay the event.
            self.chat.replies, self.chat.outputs = [], []
            self.chat.handle_event(event)
        before = self.chat.conversation
        self.chat(event)
        self.last = event
        self.record_options(before)
        self.check_turn(event, before)

    def record_options(self, before: Conversation) -> None:
        now = self.chat.conversation
        for reply in self.chat.replies:
            if isinstance(reply, OptionList):
                self.known_option_ids += [option.id for option in reply.options] + [reply.more.id]
            if isinstance(reply, PinRequest):
                self.operations.append(reply.operation)
        if now.command == "send" and now.stage == "confirm" and self.chat.replies:
            (card, amount) = CONFIRMATION_PATTERN.search(self.chat.replies[-1].text).groups()
            digits = re.sub(r"\D", "", amount)
            self.confirmations[now.operation] = (card, f"{digits[:-2]}.{digits[-2:]}")
        if now.command == "send" and now.step == "sent" and before.stage == "confirm":
            assert before.operation == now.operation
            self.gateway.confirmed[now.operation] = self.confirmations[now.operation]

    def check_turn(self, event: Event, before: Conversation) -> None:
        # The chat does not interrupt a conversation with support staff.
        is_passed_on = any(
            isinstance(output.request, gateway_requests.ContactSupport)
            for output in self.chat.outputs
        )
        assert self.chat.replies or isinstance(event, FormClosed) or is_passed_on
        if before.stage == "confirm" and self.chat.conversation.facts.get("confirmed"):
            assert is_clear_yes(event)
        for output in self.chat.outputs:
            check_no_secret(output)
            check_state_transition(before, output)
            check_replies(output)
            before = output.conversation

    def teardown(self) -> None:
        if hasattr(self, "gateway"):
            event(f"payments: {len(self.gateway.payments)}")

    def list_pin_requests(self) -> list[gateway_requests.GatewayRequest]:
        return [item for item in self.gateway.requests if get_request_kind(item) in PIN_REQUESTS]

    @invariant()
    def check_payments_were_confirmed(self):
        if not hasattr(self, "gateway"):
            return
        for payment in self.gateway.payments:
            confirmed = self.gateway.confirmed[payment.request_id]
            assert confirmed == (payment.card_serial, payment.amount)


def is_clear_yes(event: Event) -> bool:
    if isinstance(event, TextMessage):
        return not event.is_late and (
            resolver.match_command(event.text) == "yes" or event.text == "1"
        )
    return isinstance(event, OptionChosen) and not event.is_late


def check_no_secret(output: EngineOutput) -> None:
    stored = [
        msgspec.json.encode(output.conversation).decode(),
        repr(output.request),
        repr(output.person),
    ]
    for text in [*stored, *map(format_reply, output.replies)]:
        for secret in (PIN, WRONG_PIN):
            assert secret not in text


def check_state_transition(before: Conversation, output: EngineOutput) -> None:
    """Check the conversation state and the transition that led to it."""
    now = output.conversation
    current_step = SCRIPTS[now.command].get_step(now.step) if now.command else None
    assert (now.stage == "executing") == (output.request is not None)
    match now.stage:
        case "idle":
            assert (now.command, now.step, now.operation, now.facts) == (None, None, None, {})
        case "collecting":
            assert isinstance(current_step, AskStep | RequestStep)
        case "confirm":
            assert isinstance(current_step, ConfirmStep)
            assert now.operation
            assert now.offer
        case "await_pin":
            assert isinstance(current_step, PinStep)
            assert now.operation
    if current_step is not None and current_step.name == "sent" and now.command == "send":
        # A payment's PIN is requested only after a yes, for the confirmed operation.
        assert (before.stage, before.step) == ("confirm", "confirmed") or before.step == "sent"
        assert before.operation == now.operation
    if isinstance(output.request, gateway_requests.SendMoney):
        assert before.stage == "await_pin"
        assert output.request.request_id == before.operation
    if now.uncertain:
        assert isinstance(current_step, PinStep)
        assert current_step.moves_money


def check_replies(output: EngineOutput) -> None:
    for reply in output.replies:
        assert len(format_reply(reply)) > 0
        if not isinstance(reply, OptionList):
            continue
        assert len(reply.text) <= 1024
        ids = [option.id for option in reply.options]
        assert len(set(ids)) == len(ids) > 0
        max_length = 20 if len(ids) <= 3 else 24
        for option in (*reply.options, reply.more):
            assert 0 < len(option.title) <= max_length
            assert len(option.description) <= 72
            assert len(option.id) <= 200


TestRandomConversation = RandomConversation.TestCase
TestRandomConversation.settings = settings(max_examples=limit_examples(150), stateful_step_count=40)
