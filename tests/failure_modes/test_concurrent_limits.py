"""Failure mode: concurrent requests, or requests through several channels, exceed a limit."""

import asyncio

from drivers.actors import require_error, require_error_details
from drivers.deployments import TwoGateways, TwoLedgers
from drivers.messenger import ServicesDriver
from drivers.processes import Client, PendingResponse, SendRequest, count_outcomes
from harness import PIN
from tapgate_client.errors import Code

DAILY_LIMIT_EXCEEDED = (403, "DAILY_LIMIT_EXCEEDED")


async def test_daily_limit_is_shared_by_pos_in_app_p2p_cash_out_and_admin_transfers(
    two_gateways: TwoGateways,
) -> None:
    """A limit counted per channel could be spent once per channel."""
    await two_gateways.update_limits(daily_limit="100")
    aminata = await two_gateways.create_customer("1000")
    mohamed = await two_gateways.create_customer()
    terminal = (await two_gateways.create_merchant()).server
    agent = await two_gateways.create_agent("1")
    requests: list[SendRequest] = [
        lambda client: terminal.with_client(client).pay("15", aminata.card, PIN),
        lambda client: terminal.with_client(client).pay_in_app("15", aminata.card),
        lambda client: aminata.with_client(client).send_money("15", mohamed),
        lambda client: agent.with_client(client).cash_out("15", aminata),
        lambda client: two_gateways.admin.with_client(client).post(
            "wallet/transfer",
            from_account_id=aminata.account_id,
            to_account_id=mohamed.account_id,
            amount="15",
        ),
    ]
    responses = await two_gateways.run_concurrently(*requests * 4)
    assert count_outcomes(responses) == {200: 6, DAILY_LIMIT_EXCEEDED: 14}
    found = {
        require_error_details(response)["used"] for response in responses if not response.is_success
    }
    assert found == {"90.00"}
    assert require_error(await terminal.pay("10.01", aminata.card)) == DAILY_LIMIT_EXCEEDED


async def test_daily_limit_is_shared_by_chat_and_pos(
    two_gateways: TwoGateways, database_url: str
) -> None:
    """The chat must not have a separate allowance."""
    await two_gateways.update_limits(daily_limit="100")
    aminata = await two_gateways.create_customer("1000")
    mohamed = await two_gateways.create_customer()
    terminal = (await two_gateways.create_merchant()).server
    services_driver = ServicesDriver(two_gateways.harness, database_url)
    async with services_driver.run_messenger() as messenger:
        phone = messenger.create_phone(aminata.phone)
        await phone.send_by_bridge(f"send 60 to {mohamed.card}")
        await phone.send_by_bridge("yes")
        chat_payment = asyncio.create_task(phone.send_by_bridge(PIN))
        responses = await asyncio.gather(
            *(
                terminal.with_client(client).pay("30", aminata.card)
                for client in two_gateways.clients * 3
            )
        )
        await chat_payment
    pos_payment_count = sum(response.is_success for response in responses)
    # Either the chat transfer of 60 and one payment of 30, or three payments of 30.
    assert (await mohamed.get_balance(), pos_payment_count) in {("60.00", 1), ("0.00", 3)}


async def test_concurrent_transfers_do_not_exceed_the_monthly_limit(
    two_ledgers: TwoLedgers,
) -> None:
    """Monthly usage must be counted under the same lock as daily usage."""
    sender, receiver = await two_ledgers.create_pair(10_00)
    await two_ledgers.set_limits(daily_limit=100, monthly_limit=150)
    assert await two_ledgers.submit_concurrently(sender, receiver, 10, times=20) == {
        None: 10,
        Code.DAILY_LIMIT_EXCEEDED: 10,
    }
    two_ledgers.advance_clocks(days=1)
    assert await two_ledgers.submit_concurrently(sender, receiver, 10, times=20) == {
        None: 5,
        Code.MONTHLY_LIMIT_EXCEEDED: 15,
    }


async def test_concurrent_payments_do_not_exceed_the_allowance_without_a_pin(
    two_gateways: TwoGateways,
) -> None:
    """Many small concurrent payments with a stolen card, at several terminals and in apps."""
    await two_gateways.update_limits(no_pin_limit="10")
    aminata = await two_gateways.create_customer("1000")
    terminals = [(await two_gateways.create_merchant()).server for _ in range(2)]
    requests: list[SendRequest] = [
        lambda client: terminals[0].with_client(client).pay("10", aminata.card),
        lambda client: terminals[1].with_client(client).pay("10", aminata.card),
        lambda client: terminals[0].with_client(client).pay_in_app("10", aminata.card),
    ]
    responses = await two_gateways.run_concurrently(*requests * 6)
    assert count_outcomes(responses) == {200: 5, (403, "PIN_REQUIRED"): 13}
    assert await aminata.get_balance() == "950.00"


async def test_concurrent_payments_do_not_exceed_the_daily_limit_of_a_child_card(
    two_gateways: TwoGateways,
) -> None:
    """Both processes receive payments with the child card concurrently."""
    parent = await two_gateways.create_customer("1000")
    terminal = (await two_gateways.create_merchant()).server
    serial = await two_gateways.harness.create_card(parent.id, type="CHILD", daily_limit=50_00)

    def pay(client: Client) -> PendingResponse:
        return terminal.with_client(client).pay("8", serial)

    responses = await two_gateways.run_concurrently(*[pay] * 16)
    assert count_outcomes(responses) == {200: 6, (403, "CARD_LIMIT_EXCEEDED"): 10}
    assert await parent.get_balance() == "952.00"


async def test_concurrent_credits_do_not_exceed_the_maximum_balance(
    two_gateways: TwoGateways,
) -> None:
    """Each credit is below the maximum balance, but their sum exceeds it."""
    await two_gateways.update_limits(max_balance="100")
    receiver = await two_gateways.create_customer()
    sender = await two_gateways.create_customer("100")
    bank, agent = await two_gateways.create_bank("500"), await two_gateways.create_agent("500")

    def by_bank(number: int) -> SendRequest:
        return lambda client: bank.with_client(client).send_webhook("7", receiver, f"W-{number}")

    def by_agent(client: Client) -> PendingResponse:
        return agent.with_client(client).cash_in("7", receiver)

    def by_friend(client: Client) -> PendingResponse:
        return sender.with_client(client).send_money("7", receiver)

    requests = [
        request for number in range(8) for request in (by_bank(number), by_agent, by_friend)
    ]
    responses = await two_gateways.run_concurrently(*requests)
    assert count_outcomes(responses) == {200: 14, (403, "MAX_BALANCE_EXCEEDED"): 10}
    assert await receiver.get_balance() == "98.00"
