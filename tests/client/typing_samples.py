"""Code samples for the type checker. Lines that end with `# wrong` must be rejected.

This module is never executed: `test_types.py` runs mypy on it.
"""

import asyncio
from decimal import Decimal
from typing import assert_type

from tapgate_client import (
    ApiError,
    AsyncPaginator,
    AsyncTapgateClient,
    DeclinedError,
    File,
    Paginator,
    TapgateClient,
    TapgateError,
    ValidationError,
)
from tapgate_client.errors import Code
from tapgate_client.schemas.cards import CardRecord
from tapgate_client.schemas.pagination import Page
from tapgate_client.schemas.processors import TerminalRecord
from tapgate_client.schemas.subscribers import SubscriberRecord
from tapgate_client.schemas.wallets import P2pReceipt


def use_sync_client(gateway: TapgateClient) -> None:
    assert_type(gateway.subscribers.get("sub_1"), SubscriberRecord)
    assert_type(gateway.subscribers.list(status="ACTIVE"), Paginator[SubscriberRecord])
    assert_type(gateway.subscribers.list().get_page(), Page[SubscriberRecord])
    assert_type(gateway.processors.list_terminals("prc_1").get_page().data, list[TerminalRecord])
    assert_type(gateway.subscribers.get_kyc_document_image("sub_1", "doc_1"), File)
    gateway.admin.delete_api_key("key_1")
    for card in gateway.cards.list():
        assert_type(card, CardRecord)
    receipt = gateway.wallet.transfer_p2p(
        sender_id="sub_1", recipient_card_serial="TAP-1", amount=Decimal("1.50"), pin="4071"
    )
    assert_type(receipt, P2pReceipt)
    assert_type(receipt.replayed, bool)

    assert_type(gateway.subscribers.get("sub_1"), CardRecord)  # wrong
    gateway.subscribers.get(1)  # wrong
    gateway.subscribers.get()  # wrong
    gateway.subscribers.get("sub_1", pin="4071")  # wrong
    gateway.subscribers.list(state="ACTIVE")  # wrong
    gateway.subscribers.get("sub_1").fist_name  # wrong
    gateway.partners.fund("ptn_1", amount=1.5)  # wrong
    gateway.partners.fund("ptn_1", amount=1)  # wrong


async def use_async_client(gateway: AsyncTapgateClient) -> None:
    assert_type(await gateway.subscribers.get("sub_1"), SubscriberRecord)
    assert_type(gateway.subscribers.list(status="ACTIVE"), AsyncPaginator[SubscriberRecord])
    assert_type(await gateway.subscribers.list().get_page(), Page[SubscriberRecord])
    async for card in gateway.cards.list():
        assert_type(card, CardRecord)
    both = await asyncio.gather(gateway.cards.get("TAP-1"), gateway.subscribers.get("sub_1"))
    assert_type(both, tuple[CardRecord, SubscriberRecord])
    assert_type(await asyncio.create_task(gateway.cards.get("TAP-1")), CardRecord)

    assert_type(gateway.subscribers.get("sub_1"), SubscriberRecord)  # wrong
    for _ in gateway.cards.list():  # wrong
        pass
    await gateway.subscribers.get(1)  # wrong
    gateway.cards.get("TAP-1").serial  # wrong


def use_exceptions(
    error: TapgateError, response: ApiError, declined: DeclinedError, invalid: ValidationError
) -> None:
    assert_type(error.code, str | None)
    assert_type(error.request_id, str)
    assert_type(response.retry_after, float | None)
    assert_type(declined.code, str)
    assert_type(declined.code == Code.INSUFFICIENT_FUNDS, bool)
    assert_type(invalid.fields, dict[str, str])

    error.status  # wrong
    declined.fields  # wrong
