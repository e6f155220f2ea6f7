"""Conversation driver and in-memory gateway for conversation tests."""

import hashlib
from datetime import UTC, datetime, timedelta
from functools import cache
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import msgspec

from tapgate.core.images import EncodedImage
from tapgate.messenger import agent_requests, card_requests, gateway_requests
from tapgate.messenger.conversation import engine
from tapgate.messenger.conversation.state import Conversation, EngineOutput
from tapgate.messenger.gateway_requests import ClientRequest
from tapgate.messenger.model import (
    Agent,
    Card,
    Command,
    DocumentReply,
    Event,
    FormSubmitted,
    GatewayUnreachable,
    ImageReceived,
    Intent,
    Language,
    OptionChosen,
    OptionList,
    Person,
    PinRequest,
    Reply,
    RequestOutcome,
    RequestRejected,
    RequestSucceeded,
    Subscriber,
    TextMessage,
    TurnContext,
)
from tapgate.messenger.understanding import resolver
from tapgate_client import AsyncTapgateClient, money
from tapgate_client.schemas.recalls import (
    PendingRecall,
    PendingRecalls,
    RecallRecord,
    RecallStatus,
)
from tapgate_client.schemas.subscribers import Limits, LimitUsage
from tapgate_client.schemas.wallets import Balance, P2pReceipt, Quote, Recipient

PHONE, PAYEE_PHONE, CARDLESS_PHONE = "+23276123456", "+23276222222", "+23276333333"
PIN, WRONG_PIN = "4907", "8316"
CODE = "604829"
NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
IMAGE = EncodedImage("image/jpeg", b"jpeg")
MAX_PIN_ATTEMPTS = 3


#: Client operations that the engine requests directly.
OPERATIONS = (
    "agents.cash_in",
    "agents.pay_out_commission",
    "cash_out_requests.confirm_cash_out",
    "cash_out_requests.decline_cash_out",
    "cash_out_requests.list_open_cash_out_requests",
    "cash_out_requests.request_cash_out",
    "float_requests.cancel",
    "float_requests.fund_by_transfer",
    "float_requests.pass_on",
    "float_requests.request_float",
    "agents.request_pin_reset",
    "agents.reset_pin",
    "wallet.get_balance",
    "cards.link",
    "cards.request_pin_reset",
    "cards.reset_pin",
    "disputes.create",
    "recalls.keep_recalled_transfer",
    "recalls.list_pending_recalls",
    "recalls.recall_transfer",
    "recalls.return_recalled_transfer",
    "subscribers.add_kyc_document",
    "subscribers.change_pin",
    "subscribers.get_limits",
    "subscribers.register",
    "subscribers.request_pin_reset",
    "subscribers.reset_pin",
    "subscribers.update",
    "subscribers.verify_pin",
    "wallet.create_statement",
    "wallet.create_quote",
)
_AGENT_OPERATIONS = (
    "agents.cash_in",
    "agents.pay_out",
    "cash_out_requests.",
    "float_requests.",
)
#: Request class, or the name of its client operation.
RequestKind = type | str


def get_request_kind(request: gateway_requests.GatewayRequest) -> RequestKind:
    return request.operation if isinstance(request, ClientRequest) else type(request)


def check_operation(request: ClientRequest) -> None:
    """Raise an error if the client has no such operation or does not accept the arguments."""
    assert request.operation in OPERATIONS
    send = attrgetter(request.operation)(_get_client())
    send(*request.arguments, **request.fields).close()  # only builds the request


@cache
def _get_client() -> AsyncTapgateClient:
    return AsyncTapgateClient("http://gateway.invalid")


class PaymentRecord(msgspec.Struct, frozen=True):
    request_id: str
    card_serial: str
    amount: str


def build_balance(**fields: str) -> Balance:
    return Balance(user_id="sub_me", account_id="acc_me", currency="SLE", as_of="", **fields)


def build_receipt(status: str = "completed", **fields: str) -> P2pReceipt:
    recipient = Recipient(name="Aminata K.", card_serial="AM-1001")
    return P2pReceipt(message="", status=status, recipient=recipient, **fields)


def build_recall(status: str, held: str = "60.00") -> RecallRecord:
    return RecallRecord(
        id="rcl_1",
        transaction_id="txn_1",
        amount="100.00",
        held_amount=held,
        currency="SLE",
        reason=None,
        status=RecallStatus(status),
        decision=None,
        decided_by=None,
        decision_reason=None,
        reversal_id=None,
        created_at="",
        expires_at="",
    )


def build_pending_recall(number: int = 1) -> PendingRecall:
    return PendingRecall(
        id=f"rcl_{number}",
        transaction_id="txn_1",
        amount="100.00",
        held_amount="60.00",
        currency="SLE",
        sender_name=f"Aminata {number}",
        expires_at="",
    )


def build_payment(
    transaction_type: str, transaction_id: str = "txn_1", name: str = "Foday B."
) -> gateway_requests.TransactionSummary:
    return gateway_requests.TransactionSummary(
        id=transaction_id,
        type=transaction_type,
        status="completed",
        is_credit=False,
        amount="100.00",
        fee="0.00",
        currency="SLE",
        counterparty_name=name,
        at=NOW,
    )


class AgentFloat:
    """An agent's float, commission, and cash requests, in minor units."""

    def __init__(self) -> None:
        self.balance, self.commission = 2_000_00, 0
        self.cash_ins: list[int] = []
        self.cash_outs: list[int] = []
        #: Results by idempotency key, so that a repeated request changes nothing.
        self.results: dict[str, Any] = {}
        #: The cash-out that waits for the customer.
        self.cash_out: SimpleNamespace | None = None
        self.float_requests: dict[str, SimpleNamespace] = {}

    def format(self, amount: int) -> str:
        return money.format_money(amount, "SLE")

    def run(self, request: ClientRequest) -> Any:
        """Perform an operation once per idempotency key."""
        key = request.fields.get("request_id")
        if key is None:
            return self._perform(request)
        if key not in self.results:
            self.results[key] = self._perform(request)
        return self.results[key]

    def _perform(self, request: ClientRequest) -> Any:  # noqa: PLR0911 - one per operation
        match request.operation.rpartition(".")[2]:
            case "cash_in":
                return self._cash_in(money.parse(request.fields["amount"], "SLE"))
            case "pay_out_commission":
                paid, self.commission = self.commission, 0
                self.balance += paid
                return SimpleNamespace(
                    amount=self.format(paid), float_balance=self.format(self.balance)
                )
            case "request_cash_out":
                return self.ask_for_float(request.fields["amount"])
            case "list_open_cash_out_requests":
                return SimpleNamespace(data=[] if self.cash_out is None else [self.cash_out])
            case "confirm_cash_out" | "decline_cash_out" as verb:
                return self._answer(is_confirmed=verb == "confirm_cash_out")
            case "request_float":
                item = SimpleNamespace(
                    id=f"frq_{len(self.float_requests)}",
                    agent_name="Kissy Kiosk",
                    amount=request.fields["amount"],
                    currency="SLE",
                    waits_for="finance",
                    is_own=True,
                )
                self.float_requests[item.id] = item
                return item
        item = self.float_requests.pop(request.arguments[0], None)
        amount = "0.00 SLE" if item is None else f"{item.amount} SLE"
        return SimpleNamespace(amount=amount, from_balance=self.format(self.balance))

    def _cash_in(self, amount: int) -> Any:
        if amount > self.balance:
            return RequestRejected(code="INSUFFICIENT_FLOAT")
        earned = amount // 100
        self.balance -= amount
        self.commission += earned
        self.cash_ins.append(amount)
        return SimpleNamespace(
            status="completed",
            amount=self.format(amount),
            agent_balance=self.format(self.balance),
            commission_earned=self.format(earned),
            transaction_id=f"txn_{len(self.cash_ins)}",
        )

    def ask_for_float(self, amount: str) -> Any:
        if self.cash_out is not None:
            return RequestRejected(code="CASH_OUT_REQUEST_OPEN")
        self.cash_out = SimpleNamespace(
            id="cor_1",
            agent_name="Kissy Kiosk",
            amount=amount,
            currency="SLE",
            expires_at="2026-03-14T09:35:00.000Z",
        )
        return self.cash_out

    def _answer(self, *, is_confirmed: bool) -> Any:
        item, self.cash_out = self.cash_out, None
        if item is None:
            return RequestRejected(code="CASH_OUT_REQUEST_NOT_OPEN")
        if not is_confirmed:
            return item
        amount = money.parse(item.amount, "SLE")
        self.balance += amount
        self.cash_outs.append(amount)
        return SimpleNamespace(
            status="completed",
            amount=self.format(amount),
            subscriber_balance="0.00 SLE",
            transaction_id="txn_9",
        )

    def get_day(self) -> agent_requests.AgentDay:
        return agent_requests.AgentDay(
            float_balance=money.format_decimal(self.balance, "SLE"),
            commission_balance=money.format_decimal(self.commission, "SLE"),
            currency="SLE",
            cash_ins=len(self.cash_ins),
            cash_in_amount=money.format_decimal(sum(self.cash_ins), "SLE"),
            cash_outs=0,
            cash_out_amount="0.00",
        )


class FakeGateway:
    """In-memory gateway: one payment per request id, PIN checks with a lockout."""

    def __init__(self) -> None:
        self.subscriber: Subscriber | None = Subscriber(
            id="sub_me", first_name="Mariama", status="active", kyc_level=1, kyc_status="NONE"
        )
        self.pin = PIN
        self.failures = 0
        self.balance = 1_000_00
        self.cards = [
            Card(serial="TG-0001", type="PARENT", status="ACTIVE", holder_name=None),
            Card(serial="TG-0002", type="CHILD", status="BLOCKED", holder_name="Ibrahim"),
        ]
        self.payments_by_request_id: dict[
            str, tuple[gateway_requests.SendMoney, RequestOutcome]
        ] = {}
        self.agent: Agent | None = None
        self.float = AgentFloat()
        self.child_cards: list[Card] = []
        self.kept_images = 0
        #: Own payments that may be undone, and open recalls that wait for an answer.
        self.undoable: list[gateway_requests.TransactionSummary] = []
        self.pending_recalls: list[PendingRecall] = []
        self.was_number_replaced = False
        self.messages = "all"
        self.requests: list[gateway_requests.GatewayRequest] = []
        #: Outcomes to return without executing the request, by kind of request, in order.
        self.overrides: dict[RequestKind, list[RequestOutcome]] = {}
        #: Kinds of requests whose next request is executed, but whose response is lost.
        self.lost_responses: list[RequestKind] = []

    @property
    def payments(self) -> list[PaymentRecord]:
        return [
            PaymentRecord(request_id, request.payee, request.amount)
            for request_id, (request, outcome) in self.payments_by_request_id.items()
            if isinstance(outcome, RequestSucceeded)
        ]

    def handle(self, request: gateway_requests.GatewayRequest) -> RequestOutcome:
        self.requests.append(request)
        kind = get_request_kind(request)
        if isinstance(request, ClientRequest):
            check_operation(request)
        if self.overrides.get(kind):
            return self.overrides[kind].pop(0)
        outcome = self._handle(request)
        if kind in self.lost_responses:
            self.lost_responses.remove(kind)
            return GatewayUnreachable(uncertain=True)
        return outcome

    def _handle(self, request: gateway_requests.GatewayRequest) -> RequestOutcome:
        match request:
            case gateway_requests.SendMoney():
                return self._send_money(request)
            case card_requests.UnblockCard(card_serial=serial, pin=pin):
                return self._check_pin(pin) or RequestSucceeded(
                    result=self._set_card_status(serial, "ACTIVE")
                )
            case ClientRequest(
                operation="cards.link"
                | "subscribers.verify_pin"
                | "subscribers.change_pin"
                | "recalls.recall_transfer"
                | "recalls.return_recalled_transfer",
                fields=fields,
            ):
                return self._check_pin(fields.get("old_pin") or fields["pin"]) or RequestSucceeded(
                    result=self._handle_operation(request)
                )
            case ClientRequest() if request.operation.startswith(_AGENT_OPERATIONS):
                return self._handle_agent_operation(request)
            case ClientRequest():
                return RequestSucceeded(result=self._handle_operation(request))
        return RequestSucceeded(result=self._handle_other_request(request))

    def _handle_agent_operation(self, request: ClientRequest) -> RequestOutcome:
        key = request.fields.get("request_id")
        if key is None or key not in self.float.results:
            pin = request.fields.get("agent_pin") or request.fields.get("pin")
            rejection = None if pin is None else self._check_pin(pin)
            if rejection is not None:
                return rejection
        result = self.float.run(request)
        return result if isinstance(result, RequestRejected) else RequestSucceeded(result=result)

    def _send_money(self, request: gateway_requests.SendMoney) -> RequestOutcome:
        if request.request_id in self.payments_by_request_id:
            first, outcome = self.payments_by_request_id[request.request_id]
            is_replay = (first.payee, first.amount) == (request.payee, request.amount)
            return outcome if is_replay else RequestRejected(code="DUPLICATE_REQUEST")
        rejection = self._check_pin(request.pin)
        if rejection is not None:
            return rejection
        outcome = self._build_receipt(request)
        self.payments_by_request_id[request.request_id] = (request, outcome)
        return outcome

    def _build_receipt(self, request: gateway_requests.SendMoney) -> RequestOutcome:
        amount = money.parse(request.amount, "SLE")
        fee = money.apply_rate(amount, 1_500)
        if amount + fee > self.balance:
            return RequestRejected(code="INSUFFICIENT_FUNDS")
        self.balance -= amount + fee
        return RequestSucceeded(
            result=build_receipt(
                transaction_id=f"txn_{len(self.payments_by_request_id)}",
                amount=money.format_money(amount, "SLE"),
                fee_amount=money.format_money(fee, "SLE"),
                sender_new_balance=money.format_money(self.balance, "SLE"),
            )
        )

    def _check_pin(self, pin: str) -> RequestRejected | None:
        if self.failures >= MAX_PIN_ATTEMPTS:
            return RequestRejected(
                code="ACCOUNT_LOCKED", details={"locked_until": "2026-03-14T10:00:00.000Z"}
            )
        if pin == self.pin:
            self.failures = 0
            return None
        self.failures += 1
        attempts_left = MAX_PIN_ATTEMPTS - self.failures
        return RequestRejected(code="INVALID_PIN", details={"attempts_remaining": attempts_left})

    def _set_card_status(self, serial: str, status: str) -> Card:
        card = next(card for card in self.cards if card.serial == serial)
        changed = msgspec.structs.replace(card, status=status)
        self.cards[self.cards.index(card)] = changed
        return changed

    def _handle_operation(self, request: ClientRequest) -> Any:  # noqa: PLR0911, PLR0912 - one per operation
        fields = request.fields
        match request.operation:
            case "cards.link":
                serial = fields["card_serial"] or "TG-0003"  # the tapped card
                return SimpleNamespace(card=SimpleNamespace(serial=serial))
            case "disputes.create":
                return SimpleNamespace(id="dsp_1")
            case "recalls.list_pending_recalls":
                return PendingRecalls(data=self.pending_recalls)
            case "recalls.recall_transfer":
                return build_recall("open")
            case "recalls.return_recalled_transfer":
                return build_recall("returned")
            case "recalls.keep_recalled_transfer":
                return build_recall("kept")
            case "subscribers.update":
                self.messages = fields["messages"]
            case "subscribers.change_pin":
                self.pin = fields["new_pin"]
            case "subscribers.register":
                self.pin = fields["pin"]
                self.subscriber = Subscriber(
                    id="sub_me",
                    first_name=fields["first_name"],
                    status="active",
                    kyc_level=1,
                    kyc_status="",
                )
                return SimpleNamespace(subscriber=self.subscriber)
            case "wallet.get_balance":
                text = money.format_decimal(self.balance, "SLE")
                return build_balance(balance=text, available=text, held="0.00")
            case "subscribers.get_limits":
                return self._build_limits()
            case "wallet.create_quote":
                return self.build_quote(money.parse(fields["amount"], "SLE"))
            case "wallet.create_statement":
                return SimpleNamespace(statement_url="https://x.test/s")
            case "subscribers.reset_pin" | "agents.reset_pin" | "cards.reset_pin":
                self.pin, self.failures = fields["new_pin"], 0
        return None

    def _build_limits(self) -> Limits:
        usage = LimitUsage(limit="10000.00", used="1500.00", remaining="8500.00", resets_at="")
        return Limits(
            kyc_level=1 if self.subscriber is None else self.subscriber.kyc_level,
            currency="SLE",
            per_transaction="5000.00",
            daily=usage,
            monthly=usage,
            max_balance="50000.00",
        )

    def _handle_other_request(self, request: gateway_requests.GatewayRequest) -> Any:  # noqa: PLR0911, PLR0912 - one per type
        match request:
            case gateway_requests.FindSubscriber():
                return self.subscriber
            case agent_requests.FindAgents(place=place):
                agent = agent_requests.AgentSummary(name="Kargbo Shop", address="5 Main St, Bo")
                return [agent] if place == "Bo" else []
            case gateway_requests.GetLastDecline() | gateway_requests.GetSupportContact():
                return None
            case gateway_requests.FindPayeeByCard(card_serial=serial) if serial.startswith("AM-"):
                return gateway_requests.Payee(
                    name="Aminata K.", can_receive=True, payee=serial, subscriber_id="sub_her"
                )
            case gateway_requests.FindPayeeByCard(card_serial="TG-0001"):
                return gateway_requests.Payee(
                    name="Mariama S.", can_receive=True, payee="TG-0001", subscriber_id="sub_me"
                )
            case gateway_requests.FindPayeeByPhone(phone=phone) if phone == PAYEE_PHONE:
                return gateway_requests.Payee(
                    name="Aminata K.", can_receive=True, payee=phone, subscriber_id="sub_her"
                )
            case gateway_requests.FindPayeeByPhone(phone=phone) if phone == CARDLESS_PHONE:
                return gateway_requests.Payee(
                    name="Foday B.", can_receive=True, payee=phone, subscriber_id="sub_him"
                )
            case gateway_requests.FindPayeeByCard() | gateway_requests.FindPayeeByPhone():
                return None
            case gateway_requests.GetLastTransfers():
                outgoing, incoming = reversed(self._build_history(2))
                return gateway_requests.LastTransfers(incoming=incoming, outgoing=outgoing)
            case gateway_requests.ListTransactions(limit=limit):
                return self._build_history(limit)
            case gateway_requests.GetProof(transaction_id=transaction_id):
                return f"packed-{transaction_id}"
            case gateway_requests.ListUndoable(types=types):
                return [item for item in self.undoable if item.type in types]
            case gateway_requests.ObjectToPhoneChange():
                return self.was_number_replaced
            case card_requests.ListCards():
                return list(self.cards)
            case card_requests.BlockCard(card_serial=serial, reason=reason):
                return self._set_card_status(
                    serial, "BLOCKED" if reason == "customer_request" else "LOST"
                )
            case gateway_requests.VerifyOneTimeCode(code=code):
                return code == CODE
            case gateway_requests.CountKeptImages():
                return self.kept_images
            case gateway_requests.AddKeptDocument():
                self.kept_images -= 1
                return self.kept_images
            case agent_requests.FindAgent():
                return self.agent
            case agent_requests.GetAgentDay():
                return self.float.get_day()
            case agent_requests.FindFloatRequests():
                return list(self.float.float_requests.values())
            case card_requests.FindPinHolders():
                return card_requests.PinHolders(
                    subscriber=self.subscriber, agent=self.agent, child_cards=self.child_cards
                )
        return True

    def build_quote(self, amount: int) -> Quote:
        fee = money.apply_rate(amount, 1_500)
        is_allowed = amount + fee <= self.balance
        return Quote(
            amount=money.format_decimal(amount, "SLE"),
            fee_amount=money.format_decimal(fee, "SLE"),
            total=money.format_decimal(amount + fee, "SLE"),
            currency="SLE",
            allowed=is_allowed,
            reasons=[] if is_allowed else ["INSUFFICIENT_FUNDS"],
        )

    def _build_history(self, limit: int) -> list[gateway_requests.TransactionSummary]:
        return [
            gateway_requests.TransactionSummary(
                type="transfer_p2p",
                status="completed" if n else "under_review",
                is_credit=n % 2 == 0,
                amount="1234.50",
                fee="0.00" if n % 2 == 0 else "18.52",
                currency="SLE",
                counterparty_name="Aminata K." if n else None,
                at=NOW - timedelta(days=n),
                id=f"txn_{n}",
            )
            for n in range(limit)
        ]


class ConversationDriver:
    """Processes events as the service does, with an in-memory gateway."""

    def __init__(self, language: Language | None = "en", **overrides: Any) -> None:
        self.gateway = FakeGateway()
        self.person = Person(address=PHONE, phone=PHONE, language=language)
        self.conversation = Conversation()
        self.settings = {"pin_entry_mode": "text", "can_send_documents": True, **overrides}
        self.turn_count = 0
        self.replies: list[Reply] = []
        self.outputs: list[EngineOutput] = []

    def __call__(self, event: Event | str) -> str:
        """Process an event and return the replies as text."""
        if isinstance(event, str):
            event = build_text_message(event)
        self.replies, self.outputs = [], []
        self.person, self.conversation = self.handle_event(event)
        return self.reply_text

    def handle_event(self, event: Event) -> tuple[Person, Conversation]:
        self.turn_count += 1
        person, conversation, context = self.person, self.conversation, self.build_context()
        for _ in range(12):
            output = engine.process_event(person, conversation, event, context)
            self.outputs.append(output)
            self.replies += output.replies
            self.gateway.kept_images += output.kept_image is not None
            if output.deletes_kept_images:
                self.gateway.kept_images = 0
            person, conversation = output.person, reencode_conversation(output.conversation)
            if output.request is None:
                return person, conversation
            event = self.gateway.handle(output.request)
        raise AssertionError("the turn made too many gateway requests")

    def build_context(self) -> TurnContext:
        fields = {
            "now": NOW,
            "new_operation_id": f"op-{self.turn_count}",
            "currency": "SLE",
            "digest": build_digest,
            "verify_page_url": "https://pay.example.com/verify",
            **self.settings,
        }
        return TurnContext(**fields)

    def choose_option(self, value: str, *, late: bool = False) -> str:
        """Choose the option with the given value in the last offer."""
        return self(OptionChosen(id=self.get_option_id(value), is_late=late))

    def get_option_id(self, value: str) -> str:
        options = self.last_offer
        assert options is not None
        return next(o.id for o in options.options if o.id.partition("#")[0] == value)

    def submit_pin_form(
        self, pin: str | None = PIN, new_pin: str | None = None, code: str | None = None
    ) -> str:
        form = next(reply for reply in reversed(self.replies) if isinstance(reply, PinRequest))
        return self(FormSubmitted(operation=form.operation, pin=pin, new_pin=new_pin, code=code))

    def send_image(self) -> str:
        return self(ImageReceived(image=IMAGE, kept_count=self.gateway.kept_images))

    @property
    def last_offer(self) -> OptionList | None:
        return self.conversation.offer

    @property
    def reply_text(self) -> str:
        return "\n".join(format_reply(reply) for reply in self.replies)

    def list_requests(self, kind: RequestKind) -> list[Any]:
        return [item for item in self.gateway.requests if get_request_kind(item) == kind]


def build_digest(text: str) -> str:
    return "".join(chr(ord("a") + byte % 26) for byte in hashlib.sha256(text.encode()).digest())


def build_text_message(
    text: str | None, command: Command | None = None, **more: Any
) -> TextMessage:
    """Build a text message; without `command`, the intent is the exact keyword match."""
    if command is None and text is not None:
        command = resolver.match_command(text)
    return TextMessage(text=text, intent=Intent(command=command), **more)


def resolve_text_message(text: str) -> TextMessage:
    """Build a text message with the intent that the resolver finds."""
    return TextMessage(text=text, intent=resolver.resolve(text, None))


def reencode_conversation(conversation: Conversation) -> Conversation:
    return msgspec.json.decode(msgspec.json.encode(conversation), type=Conversation)


def format_reply(reply: Reply) -> str:
    if isinstance(reply, DocumentReply):
        return f"{reply.caption} {reply.link}"
    if isinstance(reply, OptionList):
        return "\n".join([reply.text, *(option.title for option in reply.options)])
    return reply.text
