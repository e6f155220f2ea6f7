"""Coordinator that completes journaled transfers: `python -m tools.two_books.coordinator`.

It may be killed at any time and started again, and several may run on one journal. All decisions
are stored by the books under idempotency keys, so every coordinator comes to the same result.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Mapping
from pathlib import Path
from typing import Final, Protocol

import msgspec

from tapgate_client import (
    ApiError,
    AsyncTapgateClient,
    Login,
    PartnerKey,
    RetryPolicy,
    TapgateError,
)
from tapgate_client.schemas.transactions import Receipt, TransactionStatus
from tools.two_books.journal import Journal
from tools.two_books.protocol import Outcome, State, Transfer, advance

_MAX_CONCURRENT_TRANSFERS: Final = 16
_PAUSE_SECONDS: Final = 0.2
#: The coordinator repeats a step itself, so that it can be stopped between attempts.
_RETRIES: Final = RetryPolicy(max_attempts=2)


class BookAccess(msgspec.Struct, frozen=True):
    """How the coordinator accesses a book: as a finance user, and as the other book's partner."""

    url: str
    email: str
    password: str
    partner_id: str
    partner_account_id: str
    api_key_id: str
    hmac_secret: str


class Book(Protocol):
    """Transfer steps in one book. They return None while the outcome is not final."""

    async def debit(self, transfer: Transfer) -> Outcome | None: ...
    async def credit(self, transfer: Transfer) -> Outcome | None: ...
    async def return_to_payer(self, transfer: Transfer) -> Outcome | None: ...


class GatewayBook:
    """A book behind a gateway, which is accessed only through its API."""

    def __init__(
        self, access: BookAccess, finance: AsyncTapgateClient, partner: AsyncTapgateClient
    ) -> None:
        self._access = access
        self._finance = finance
        self._partner = partner

    async def debit(self, transfer: Transfer) -> Outcome | None:
        return await self._submit(self._debit(transfer))

    async def _debit(self, transfer: Transfer) -> Receipt:
        payer = await self._finance.subscribers.get(transfer.payer)
        return await self._finance.wallet.transfer_funds(
            from_account_id=payer.account_id,
            to_account_id=self._access.partner_account_id,
            amount=transfer.amount,
            description=f"To {transfer.target}: {transfer.id}",
            request_id=f"{transfer.id}-debit",
        )

    async def credit(self, transfer: Transfer) -> Outcome | None:
        return await self._submit(
            self._partner.partners.fund_from_partner(
                subscriber_id=transfer.recipient,
                amount=transfer.amount,
                partner_reference=transfer.id,
                request_id=f"{transfer.id}-credit",
            )
        )

    async def return_to_payer(self, transfer: Transfer) -> Outcome | None:
        return await self._submit(
            self._partner.partners.fund_from_partner(
                subscriber_id=transfer.payer,
                amount=transfer.amount,
                partner_reference=f"{transfer.id}-return",
                request_id=f"{transfer.id}-return-{transfer.attempt}",
            )
        )

    async def _submit(self, request: Awaitable[Receipt]) -> Outcome | None:
        try:
            receipt = await request
            if receipt.status != TransactionStatus.UNDER_REVIEW:
                return Outcome()
            record = await self._finance.transactions.get(receipt.transaction_id)
        except ApiError as error:
            # A decline that is replayed was stored under the idempotency key, so no delayed attempt
            # can still succeed. Any other error is followed by another attempt.
            return Outcome(error.code) if error.replayed else None
        except TapgateError:
            return None
        if record.status == TransactionStatus.FAILED:
            return Outcome(record.failure_code)
        return None if record.status == TransactionStatus.UNDER_REVIEW else Outcome()


class Coordinator:
    def __init__(self, journal: Journal, books: Mapping[str, Book]) -> None:
        self._journal = journal
        self._books = books

    async def run(self) -> None:
        """Return when every journaled transfer is final."""
        slots = asyncio.Semaphore(_MAX_CONCURRENT_TRANSFERS)

        async def process(transfer: Transfer) -> None:
            async with slots:
                await self.process(transfer)

        while transfers := self._journal.list_open():
            await asyncio.gather(*map(process, transfers))
            await asyncio.sleep(_PAUSE_SECONDS)

    async def process(self, transfer: Transfer) -> None:
        """Execute a transfer's steps until it is final or a step's outcome is not."""
        while not transfer.is_final:
            outcome = await self._execute_step(transfer)
            if outcome is None:
                return
            after = advance(transfer, outcome)
            self._journal.record(transfer, after)
            if after.attempt > transfer.attempt:
                return  # the return was declined; later it may be accepted
            transfer = after

    async def _execute_step(self, transfer: Transfer) -> Outcome | None:
        source, target = self._books[transfer.source], self._books[transfer.target]
        if transfer.state is State.PENDING:
            return await source.debit(transfer)
        if transfer.state is State.DEBITED:
            return await target.credit(transfer)
        return await source.return_to_payer(transfer)


@contextlib.asynccontextmanager
async def open_book(access: BookAccess) -> AsyncIterator[GatewayBook]:
    key = PartnerKey(access.api_key_id, access.partner_id, access.hmac_secret)
    login = Login(access.email, access.password)
    async with (
        AsyncTapgateClient(access.url, login, retries=_RETRIES) as finance,
        AsyncTapgateClient(access.url, key, retries=_RETRIES) as partner,
    ):
        yield GatewayBook(access, finance, partner)


async def _main(journal: Journal, accesses: Mapping[str, BookAccess]) -> None:
    async with contextlib.AsyncExitStack() as stack:
        books = {
            name: await stack.enter_async_context(open_book(access))
            for name, access in accesses.items()
        }
        await Coordinator(journal, books).run()


if __name__ == "__main__":
    asyncio.run(
        _main(
            Journal(Path(sys.argv[1])),
            msgspec.json.decode(Path(sys.argv[2]).read_bytes(), type=dict[str, BookAccess]),
        )
    )
