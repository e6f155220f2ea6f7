"""Random commands for the ledger and its model."""

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

from builders.ledger import is_correct_pin
from ledger import reference_model
from ledger.reference_model import CARDS, WALLETS, ReferenceModel, Step
from tapgate.core.id_generator import IdGenerator
from tapgate.ledger import chart, commands
from tapgate.ledger.commands import Command, LedgerCommand, ReviewDecision, ScopedIdempotencyKey
from tapgate.ledger.decisions.apply import apply_decision
from tapgate.ledger.decisions.decide import decide
from tapgate.ledger.decisions.review import decide_review
from tapgate.ledger.decisions.state import Account, Agent, Card, State, StoredTransaction
from tapgate.ledger.pins.pin_lockout import PinState
from tapgate.ledger.rules.commission import CommissionRate
from tapgate.ledger.rules.compliance import ComplianceRule
from tapgate.ledger.rules.fees import FeeTier
from tapgate.ledger.rules.kyc_limits import AccountRule
from tapgate.ledger.rules.loaded_rules import Rules

#: Sequences with enough waits cross the end of the month.
START = datetime(2026, 3, 30, 9, tzinfo=UTC)
OWNERS = {
    "w0": 100,
    "w1": 101,
    "w2": 102,
    "agent": 103,
    "merchant": 104,
    "partner": 105,
    "sub": 106,
}
ACCOUNTS = {name: owner * 10 for name, owner in OWNERS.items()}
ACCOUNTS |= {"commission": 2000, "fees": 2001, "expense": 2002, "cash": 2003}
OPENING_BALANCES = {
    "w0": 1_900,
    "w1": 1_000,
    "w2": 3_000,
    "agent": 900,
    "merchant": 30,
    "partner": 100,
}
amounts = st.sampled_from([1, 34, 49, 50, 50, 50, 51, 80, 120, 250, 300, 400, 601, 650, 701, 901])
requests = st.one_of(st.none(), st.none(), st.sampled_from(["r1", "r2", "r3", "r4", "r5"]))
pins = st.sampled_from(
    [reference_model.PIN, reference_model.PIN, reference_model.PIN, None, "0000"]
)
wallets, cards = st.sampled_from(sorted(WALLETS)), st.sampled_from(sorted(CARDS))
floats = st.sampled_from(["agent", "agent", "sub"])
payments = st.sampled_from([chart.POS_PAYMENT, chart.ONLINE_PAYMENT])


def build_steps(kind: Any, payer: Any, payee: Any) -> Any:
    return st.builds(
        Step, kind=kind, payer=payer, payee=payee, amount=amounts, pin=pins, request=requests
    )


steps = st.one_of(
    build_steps(st.just(chart.TRANSFER_P2P), wallets, cards),
    build_steps(st.just(chart.TRANSFER_P2P), wallets, wallets),  # to a phone number
    build_steps(st.just(chart.TRANSFER), wallets, wallets),
    build_steps(payments, cards, st.just("merchant")),
    build_steps(payments, cards, st.just("merchant")),
    build_steps(payments, cards, st.just("merchant")),
    build_steps(st.just(chart.AGENT_CASHIN), st.just("agent"), wallets),
    build_steps(st.just(chart.AGENT_CASHOUT), wallets, st.just("agent")),
    build_steps(st.just(chart.AGENT_TRANSFER), floats, floats),
    st.builds(
        Step, kind=st.just(chart.AGENT_FUND), payer=st.just("cash"), payee=floats, amount=amounts
    ),
    st.just(Step(chart.COMMISSION_PAYOUT, "commission", "agent", None)),
    st.builds(
        Step,
        kind=st.just(chart.PARTNER_FUND),
        payer=st.just("partner"),
        payee=wallets,
        amount=amounts,
        request=requests,
    ),
    st.builds(
        Step,
        kind=st.just("refund"),
        amount=st.one_of(st.none(), amounts),
        original=st.integers(0, 30),
        request=requests,
    ),
    st.builds(
        Step, kind=st.just("decide_review"), original=st.integers(0, 30), release=st.booleans()
    ),
    st.builds(Step, kind=st.just("wait"), hours=st.sampled_from([1, 6, 13])),
)
sequences = st.lists(steps, min_size=20, max_size=40)


def build_rules() -> Rules:
    return Rules(
        currency="SLE",
        limits={
            level: AccountRule(
                kyc_level=level,
                max_balance=limits["max_balance"],
                max_transaction=limits["transaction"],
                daily_limit=limits["day"],
                monthly_limit=limits["month"],
                no_pin_limit=limits["no_pin"],
                requirements=[],
            )
            for level, limits in reference_model.LIMITS.items()
        },
        fees={
            kind: (FeeTier(type=kind, up_to=None, rate=rate, payer=payer),)
            for kind, rate, payer in (
                (chart.TRANSFER_P2P, 1_500, "sender"),
                (chart.POS_PAYMENT, 1_000, "receiver"),
                (chart.ONLINE_PAYMENT, 1_000, "receiver"),
            )
        },
        commissions={
            (kind, 1): CommissionRate(
                type=kind, tier=1, rate=rate, minimum_amount=reference_model.MIN_COMMISSIONED_AMOUNT
            )
            for kind, rate in reference_model.COMMISSION_RATES.items()
        },
        compliance_rules=(
            build_rule(1, "AMOUNT_THRESHOLD", reference_model.REVIEW_ABOVE, None, "review"),
            build_rule(
                2, "TRANSACTION_COUNT", reference_model.MAX_PAYMENTS_PER_DAY, 86_400, "block"
            ),
            build_rule(3, "PIN_FAILURES", reference_model.MAX_WRONG_PINS_PER_DAY, 86_400, "block"),
            *(ComplianceRule(**rule, severity="LOW") for rule in CASH_RULES),
        ),
        platform_accounts={
            chart.FEES: ACCOUNTS["fees"],
            chart.COMMISSION_EXPENSE: ACCOUNTS["expense"],
            chart.CASH: ACCOUNTS["cash"],
        },
    )


#: Rules whose subject is the payee or the agent.
CASH_RULES: list[dict[str, Any]] = [
    {
        "id": number,
        "type": kind,
        "subject": subject,
        "transaction_types": frozenset(types),
        "threshold": threshold,
        "window_seconds": window,
        "action": action,
    }
    for number, kind, subject, types, threshold, window, action in (
        (4, "AMOUNT_THRESHOLD", "payee", [chart.AGENT_CASHIN], reference_model.REVIEW_CASH_ABOVE,
         None, "review"),
        (5, "AMOUNT_THRESHOLD", "agent", [chart.AGENT_CASHOUT], reference_model.REVIEW_CASH_ABOVE,
         None, "review"),
        (6, "TRANSACTION_COUNT", "agent", chart.CASH_TYPES,
         reference_model.MAX_CASH_OPERATIONS_PER_DAY, 86_400, "block"),
    )
]  # fmt: skip


def build_rule(number: int, kind: str, threshold: int, window: int | None, action: str) -> Any:
    return ComplianceRule(
        id=number,
        type=kind,
        transaction_types=list(reference_model.MONITORED_TYPES),
        threshold=threshold,
        window_seconds=window,
        action=action,
        severity="LOW",
    )


def build_command(step: Step, created: list[int]) -> LedgerCommand:
    """Build the ledger command for a step; `created` holds the transaction IDs so far."""
    original = created[step.original] if step.original is not None else None
    if step.kind == "decide_review":
        assert original is not None
        return ReviewDecision(transaction_id=original, release=step.release)
    fingerprint = repr((step.kind, step.payer, step.payee, step.amount, step.original)).encode()
    return Command(
        type=step.kind,
        channel="api",
        payer=build_party(step.payer or "merchant"),
        payee=build_party(step.payee or "cash"),
        amount=step.amount,
        payer_pin=step.pin,
        pin_policy="above_no_pin_limit" if step.payer in CARDS else "if_given",
        original_id=original,
        idempotency_key=ScopedIdempotencyKey("test", step.request, fingerprint)
        if step.request
        else None,
    )


def build_party(name: str) -> commands.Party:
    if name in CARDS:
        return commands.card_party(name)
    builders = {
        "agent": commands.agent_party,
        "sub": commands.agent_party,
        "merchant": commands.processor_party,
        "partner": commands.partner_party,
    }
    if name == "cash":
        return commands.CASH_PARTY
    if name == "commission":
        return commands.commission_party(OWNERS["agent"])
    return builders.get(name, commands.subscriber_party)(OWNERS[name])


def build_model() -> ReferenceModel:
    balances = dict.fromkeys(ACCOUNTS, 0) | OPENING_BALANCES
    return ReferenceModel(now=START, balances=balances)


class InMemoryLedger:
    """Ledger decisions without a database: `decide` and `apply_decision` over one state."""

    def __init__(self) -> None:
        self.new_id = IdGenerator(1)
        self.transaction_ids: list[int] = []
        self.state = State(
            now=START, today=START.date(), rules=build_rules(), accounts={}, accounts_by_owner={}
        )
        kinds = {
            "agent": chart.FLOAT,
            "sub": chart.FLOAT,
            "merchant": chart.SETTLEMENT,
            "partner": chart.CLEARING,
        }
        for name, account_id in ACCOUNTS.items():
            owner = OWNERS["agent"] if name == "commission" else OWNERS.get(name)
            kind = kinds.get(name, chart.WALLET if name in WALLETS else name)
            account = Account(
                id=account_id,
                kind=kind,
                owner_id=owner,
                public_name=name,
                status="active",
                kyc_level=WALLETS.get(name),
                balance=OPENING_BALANCES.get(name, 0),
                held=0,
                overdraft=reference_model.OVERDRAFT if name == "partner" else 0,
                usage_day=None,
                day_used=0,
                month_used=0,
                is_locked=owner is not None,
            )
            self.state.accounts[account_id] = account
            if owner is not None:
                self.state.accounts_by_owner[owner, kind] = account
        for number, (serial, wallet) in enumerate(CARDS.items(), start=500):
            is_child = serial == "k0"
            self.state.cards[serial] = Card(
                id=number,
                serial=serial,
                status="ACTIVE",
                account_id=ACCOUNTS[wallet],
                pin_holder_id=number if is_child else OWNERS[wallet],
                daily_limit=reference_model.CHILD_LIMIT if is_child else None,
                usage_day=None,
                day_spent=0,
                day_unpinned=0,
                expires_at=None,
            )
            if is_child:
                self.add_pin(number, reference_model.CHILD_PIN)
        for name in (*WALLETS, "agent", "sub"):
            self.add_pin(OWNERS[name], reference_model.PIN)
        for agent, parent in ((OWNERS["agent"], None), (OWNERS["sub"], OWNERS["agent"])):
            self.state.agents[agent] = Agent(agent, ACCOUNTS["commission"], 1, parent)

    def add_pin(self, holder: int, pin: str) -> None:
        self.state.pins[holder] = PinState(holder, "test", b"", pin.encode(), 0, None)

    def advance_counts(self, model: ReferenceModel) -> None:
        """Set the time and the counts that the next batch would load from the database."""
        self.state.now, self.state.today = model.now, model.now.date()
        self.state.window_totals = count_recent(model)
        self.state.wrong_pin_counts = {
            (3, ACCOUNTS[wallet]): model.count_recent_wrong_pins(wallet) for wallet in WALLETS
        }

    def run(self, step: Step) -> Any:
        command = build_command(step, self.transaction_ids)
        if isinstance(command, Command):
            decision = decide(self.state, command, is_correct_pin, self.new_id)
        else:
            decision = decide_review(self.state, command)
        apply_decision(self.state, decision)
        row = decision.transaction
        if row is not None:
            self.transaction_ids.append(row.id)
            if row.from_account is not None and row.to_account is not None:
                self.state.transactions[row.id] = StoredTransaction(
                    row.id,
                    row.type,
                    row.status,
                    row.amount,
                    row.fee_amount,
                    0,
                    row.held,
                    row.from_account,
                    row.to_account,
                    row.card_serial,
                    row.to_card_serial,
                    row.usage_day,
                    self.state.now,
                    "unpinned" in (row.context or {}),
                )
        return decision.outcome.code or (decision.outcome.result and decision.outcome.result.status)


def is_possible(step: Step, created: int) -> bool:
    return step.original is None or step.original < created


def count_recent(model: ReferenceModel) -> dict[tuple[int, int], tuple[int, int]]:
    counts: dict[tuple[int, int], tuple[int, int]] = {}
    for transaction in model.transactions:
        is_recent = (model.now - transaction.created_at).total_seconds() <= 86_400
        if (
            transaction.payer in WALLETS
            and transaction.kind in reference_model.MONITORED_TYPES
            and is_recent
        ):
            if transaction.status == "failed":
                continue
            key = (2, ACCOUNTS[transaction.payer])
            count, total = counts.get(key, (0, 0))
            counts[key] = (count + 1, total + transaction.amount)
    counts[6, ACCOUNTS["agent"]] = (model.count_recent_cash(), 0)
    return counts
