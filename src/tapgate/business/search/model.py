"""What a search looks for, and what it finds."""

from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from tapgate.auth.principals import Principal
from tapgate.core.phone_numbers import list_phone_prefixes, parse_phone_number
from tapgate.runtime.store.conditions import MIN_SEARCH_LENGTH
from tapgate.runtime.store.database import Database
from tapgate_client import ids, money
from tapgate_client.schemas.search import SearchResult, SearchType


class Match(NamedTuple):
    """Record that a search has found. An ID, a phone number and a code match exactly."""

    result: SearchResult
    is_exact: bool


class Search(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Text that a caller searches for. Each kind of record has at most `limit` matches."""

    database: Database
    caller: Principal
    now: datetime
    zone: ZoneInfo
    country: str | None
    logged_since: datetime  # start of the request log
    currency: str
    text: str
    limit: int

    @cached_property
    def name_prefix(self) -> str:
        """The text as the beginning of a name: in lowercase, with single spaces."""
        return " ".join(self.text.lower().split())

    @cached_property
    def phone_number(self) -> str | None:
        """The complete phone number that the text is, or None."""
        return parse_phone_number(self.text, self.country)

    @cached_property
    def phone_prefixes(self) -> list[str]:
        return list_phone_prefixes(self.text, self.country)

    @cached_property
    def amount(self) -> int | None:
        """The amount in minor units that the text is, such as `16.50`, or None."""
        try:
            return (
                money.parse(self.text.replace(",", ""), self.currency) if "." in self.text else None
            )
        except money.AmountError:
            return None

    @property
    def words(self) -> str | None:
        """The text for a search by parts of words, or None if all words are too short for it."""
        is_long = any(len(word) >= MIN_SEARCH_LENGTH for word in self.text.split())
        return self.text if is_long else None

    def decode_id(self, prefix: str) -> int | None:
        return ids.decode(prefix, self.text)


def build_match(
    type: SearchType,
    id: str,
    title: str,
    *subtitle: Any,
    status: str | None,
    is_exact: bool = False,
) -> Match:
    """Return a match. Its subtitle joins the parts that are not empty."""
    text = " · ".join(str(part) for part in subtitle if part) or None
    return Match(
        SearchResult(type=type, id=id, title=title, subtitle=text, status=status), is_exact
    )
