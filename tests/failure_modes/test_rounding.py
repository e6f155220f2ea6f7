"""Failure mode: floats or rounding create or destroy money."""

import contextlib
from collections.abc import AsyncIterator
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders.ledger import (
    LedgerDriver,
    build_p2p,
    build_payment,
    build_refund,
    remove_limits,
    require_balanced_books,
)
from drivers.actors import require_error, require_success
from drivers.deployments import TwoGateways
from drivers.in_process import AppTransport
from harness import Harness
from tapgate.core.id_generator import IdGenerator
from tapgate.core.settings import Settings
from tapgate.ledger.rules.loaded_rules import insert_defaults
from tapgate.runtime.store.database import Database
from tapgate.server.gateway import create_app, open_gateway_services
from tapgate_client import money


async def test_decimal_amounts_add_up_exactly(two_gateways: TwoGateways) -> None:
    """In floats, 0.1 + 0.2 is 0.30000000000000004, which a wallet with 0.30 cannot pay."""
    aminata = await two_gateways.create_customer("0.30")
    terminal = (await two_gateways.create_merchant()).server
    require_success(await terminal.pay("0.1", aminata.card))
    found = require_success(await terminal.pay("0.20", aminata.card))["remaining_balance"]
    assert found == "0.00 SLE"


async def test_largest_amounts_are_exact_to_the_last_cent(two_gateways: TwoGateways) -> None:
    """Above 2**53 minor units, floats skip integers."""
    bank = await two_gateways.create_bank("999999999999.99")
    for _ in range(95):
        await two_gateways.admin.fund_partner(bank, "999999999999.99")
    await two_gateways.admin.fund_partner(bank, "0.01")
    expected = 96 * 99_999_999_999_999 + 1
    assert expected > 2**53
    partner = require_success(await two_gateways.admin.get(f"admin/partners/{bank.id}"))
    assert partner["balance"] == f"{expected // 100}.{expected % 100:02d}"


amounts = st.integers(1, 10**14)
rates = st.integers(0, 100_000)


@given(amounts, rates)
def test_fee_is_the_exact_percentage_rounded_half_up(amount: int, rate: int) -> None:
    """The fee is not rounded down, rounded to even, or rounded twice."""
    exact = Decimal(amount) * rate / 100_000
    assert money.apply_rate(amount, rate) == int(exact.quantize(Decimal(1), ROUND_HALF_UP))


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=50), rates)
def test_fees_of_split_payments_deviate_by_at_most_half_a_minor_unit_each(
    parts: list[int], rate: int
) -> None:
    """Splitting a payment changes the total fee only by the rounding of each part."""
    fees = [money.apply_rate(part, rate) for part in parts]
    assert all(0 <= fee <= part for fee, part in zip(fees, parts, strict=True))
    exact = Fraction(sum(parts) * rate, 100_000)
    assert abs(sum(fees) - exact) <= Fraction(len(parts), 2)


async def test_entries_of_odd_amounts_balance_to_the_last_cent(
    database_url: str, database: Database
) -> None:
    """Fees, merchant credits, and partial refunds must add up to the amount paid."""
    ledger = await LedgerDriver.open(database_url, database)
    try:
        await database.execute("UPDATE compliance_rules SET status = 'inactive'")
        await remove_limits(ledger)
        sender = await ledger.create_subscriber(100_000_00)
        receiver = await ledger.create_subscriber()
        merchant = await ledger.create_processor()
        amounts_sent = [1, 33, 34, 66, 67, 99, 100, 101, 333, 1_005, 9_999, 12_345]
        outcomes = await ledger.submit_batch(
            [build_p2p(sender, receiver, item) for item in amounts_sent]
        )
        expected = [_round_half_up(element, "1.5") for element in amounts_sent]
        assert [entry.require_accepted().fee for entry in outcomes] == expected
        fees = sum(_round_half_up(value, "1.5") for value in amounts_sent)
        assert await ledger.get_balance(receiver) == sum(amounts_sent)
        assert await ledger.get_balance(sender) == 100_000_00 - sum(amounts_sent) - fees
        for amount in (1, 49, 50, 51, 149, 150, 9_949, 9_951):
            paid = (
                await ledger.submit(build_payment(receiver, merchant, amount))
            ).require_accepted()
            assert paid.fee == _round_half_up(amount, "1")
            if amount > 2:
                for part in (1, amount // 3):
                    (
                        await ledger.submit(build_refund(merchant, paid.transaction_id, part))
                    ).require_accepted()
            # Refunding the remainder leaves the merchant with exactly its previous balance.
            (
                await ledger.submit(build_refund(merchant, paid.transaction_id, None))
            ).require_accepted()
            assert await ledger.get_balance(merchant) == 0
        assert await ledger.get_balance(receiver) == sum(amounts_sent)
        assert await ledger.get_platform_balance("fees") == fees
        await require_balanced_books(database)
    finally:
        await ledger.close()


def _round_half_up(amount: int, percent: str) -> int:
    exact = Decimal(amount) * Decimal(percent) / 100
    return int(exact.quantize(Decimal(1), ROUND_HALF_UP))


@contextlib.asynccontextmanager
async def _run_in_currency(
    currency: str, settings: Settings, url: str
) -> AsyncIterator[TwoGateways]:
    """Run one gateway process that uses the given currency."""
    currency_settings = settings.replace(currency=currency)
    async with open_gateway_services(currency_settings, url) as services:
        async with services.transaction() as tx:
            await insert_defaults(tx, currency, IdGenerator(1023))
        transport = AppTransport(create_app(services))
        async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
            yield await TwoGateways.open(Harness(services, client), client, client)
        await require_balanced_books(services.database)


CURRENCIES: list[tuple[str, dict[str, Any]]] = [
    # JPY has no decimals: 1% of 250 is 2.5, rounded to 3. KWD has three: 0.0025 becomes 0.003.
    (
        "JPY",
        {
            "balance": "1000",
            "payment": "250",
            "fee": "3.00 JPY",
            "remaining": "750",
            "invalid": "0.5",
        },
    ),
    (
        "XOF",
        {
            "balance": "1000",
            "payment": "49",
            "fee": "0.00 XOF",
            "remaining": "951",
            "invalid": "49.0",
        },
    ),
    (
        "KWD",
        {
            "balance": "1",
            "payment": "0.250",
            "fee": "0.003 KWD",
            "remaining": "0.750",
            "invalid": "0.0001",
        },
    ),
    (
        "TND",
        {
            "balance": "10",
            "payment": "9.999",
            "fee": "0.100 TND",
            "remaining": "0.001",
            "invalid": "1.0005",
        },
    ),
]


@pytest.mark.parametrize(("currency", "expected"), CURRENCIES)
async def test_fees_are_rounded_to_the_decimals_of_the_currency(
    settings: Settings, database_url: str, currency: str, expected: dict[str, str]
) -> None:
    """Not every currency has two decimals."""
    async with _run_in_currency(currency, settings, database_url) as two_gateways:
        aminata = await two_gateways.create_customer(expected["balance"])
        terminal = (await two_gateways.create_merchant()).server
        paid = require_success(await terminal.pay(expected["payment"], aminata.card))
        assert paid["fee_amount"] == expected["fee"]
        assert await aminata.get_balance() == expected["remaining"]
        response = await terminal.pay(expected["invalid"], aminata.card)
        assert require_error(response) == (422, "VALIDATION_FAILED")
        require_success(await terminal.refund(paid["transaction_id"]))
        assert Decimal(await aminata.get_balance()) == Decimal(expected["balance"])
