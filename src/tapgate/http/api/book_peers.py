"""Clients for the other books, and the directory entries that this process has received."""

import asyncio
import time
from collections import OrderedDict
from typing import Final, NamedTuple

import httpx2
import msgspec

from tapgate.core.public_names import clean_person_name
from tapgate.core.settings import Settings
from tapgate.runtime.bounded_responses import BoundedTransport
from tapgate.runtime.fair_limit import FairLimit
from tapgate_client import ids
from tapgate_client.client import AsyncTapgateClient
from tapgate_client.credentials import PartnerKey
from tapgate_client.errors import unavailable
from tapgate_client.exceptions import NotFoundError, UnexpectedResponseError
from tapgate_client.retries import NO_RETRIES
from tapgate_client.schemas.books import BookCustomer
from tapgate_client.tls import get_tls_context_for

#: For a complete response of another book, in time and size.
_MAX_SECONDS: Final = 10.0
_MAX_BYTES: Final = 64 * 1024
#: For lookups, while a person waits.
_MAX_LOOKUP_SECONDS: Final = 3.0
#: A stale entry cannot misdirect money: it names a subscriber ID, not a phone number.
_ENTRY_SECONDS: Final = 60.0
_MISSING_SECONDS: Final = 10.0
_MAX_ENTRIES: Final = 10_000
_UNAVAILABLE: Final = "The directory of another book does not respond. Try again shortly."

#: What identifies a customer: the name of the field, and its value.
LookupKey = tuple[str, str]


class _Entry(NamedTuple):
    customer: BookCustomer | None
    expires_at: float


class DirectoryCache:
    """Customers of other books, or None for one that no book has."""

    def __init__(self) -> None:
        self._entries: OrderedDict[LookupKey, _Entry] = OrderedDict()

    def get(self, key: LookupKey) -> _Entry | None:
        entry = self._entries.get(key)
        return None if entry is None or entry.expires_at < time.monotonic() else entry

    def put(self, key: LookupKey, customer: BookCustomer | None) -> None:
        """Store a response, unless it is older than the stored one."""
        known = self._entries.pop(key, None)
        if (
            known is not None
            and known.customer is not None
            and customer is not None
            and known.customer.subscriber_id == customer.subscriber_id
            and known.customer.version > customer.version
        ):
            customer = known.customer
        seconds = _MISSING_SECONDS if customer is None else _ENTRY_SECONDS
        self._entries[key] = _Entry(customer, time.monotonic() + seconds)
        if len(self._entries) > _MAX_ENTRIES:
            self._entries.popitem(last=False)


class BookPeers:
    """The other books. Each is known by its code, and by the partner that represents it here."""

    def __init__(self, settings: Settings, http: httpx2.AsyncBaseTransport | None = None) -> None:
        self.own_code = settings.book
        self._peers = settings.book_peers
        self._secrets = settings.book_secrets
        self._http = http
        #: A slow book must not hold the requests that ask it until none is left for other callers.
        self._lookups = FairLimit(
            _UNAVAILABLE, slots=64, slots_per_group=16, queue=64, queue_per_group=16, timeout=1.0
        )
        self._clients: dict[str, AsyncTapgateClient] = {}
        self.directory = DirectoryCache()

    @property
    def codes(self) -> list[str]:
        return list(self._peers)

    def find_code(self, partner_id: int | None) -> str | None:
        """Return the code of the book that a partner represents, or None."""
        for code in self._peers:
            if self.get_partner_id(code) == partner_id:
                return code
        return None

    def get_partner_id(self, code: str) -> int:
        partner_id = ids.decode(ids.PARTNER, self._peers[code].partner)
        assert partner_id is not None
        return partner_id

    async def find_customer(self, key: LookupKey) -> BookCustomer | None:
        """Return a customer of another book, or None.

        Of several books that have the customer, the first in the settings counts. Raises 503 if no
        book has the customer and one of them does not respond. An entry names the subscriber, so
        that a transfer reaches the person whose name the sender confirmed, even if the phone number
        or the card is assigned to another person in between.
        """
        if not self._peers:
            return None
        known = self.directory.get(key)
        if known is not None:
            return known.customer
        found = await asyncio.gather(
            *(self._look_up(code, key) for code in self._peers), return_exceptions=True
        )
        customer = next((one for one in found if isinstance(one, BookCustomer)), None)
        if customer is None and any(isinstance(one, BaseException) for one in found):
            raise unavailable(_UNAVAILABLE)
        self.directory.put(key, customer)
        return customer

    async def _look_up(self, code: str, key: LookupKey) -> BookCustomer | None:
        field, value = key
        try:
            async with self._lookups.slot(code), asyncio.timeout(_MAX_LOOKUP_SECONDS):
                customer = await self.get_client(code).books.look_up(**{field: value})
        except NotFoundError:
            return None
        if ids.decode(ids.SUBSCRIBER, customer.subscriber_id) is None:
            raise UnexpectedResponseError("", 200)
        # The code by which this book knows the other one, whatever the other one calls itself.
        name = clean_person_name(customer.name) if customer.name else None
        return msgspec.structs.replace(customer, book=code, name=name)

    def get_client(self, code: str) -> AsyncTapgateClient:
        """Return the client for a book. It sends each request once: the worker repeats it."""
        client = self._clients.get(code)
        if client is None:
            peer = self._peers[code]
            transport = self._http or httpx2.AsyncHTTPTransport(
                verify=get_tls_context_for(peer.url, trust_env=True)
            )
            client = self._clients[code] = AsyncTapgateClient(
                peer.url,
                PartnerKey(peer.key, peer.own_partner, self._secrets[code]),
                retries=NO_RETRIES,
                timeout=_MAX_SECONDS,
                http=BoundedTransport(transport, max_bytes=_MAX_BYTES, max_seconds=_MAX_SECONDS),
            )
        return client

    async def close(self) -> None:
        for client in self._clients.values():
            await client.close()
