"""Requests and responses for the search over all record kinds."""

from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from tapgate_client.schemas.fields import IntegerRange, InvalidValueError, Rule, TextRule
from tapgate_client.schemas.values import Id, Word

MAX_SEARCH_LENGTH: Final = 100
#: Result title or subtitle that replaces a restricted subscriber's name.
RESTRICTED_SUBSCRIBER: Final = "Restricted subscriber"


class SearchType(StrEnum):
    """Kinds of records, in the order of the results."""

    SUBSCRIBER = "subscriber"
    CARD = "card"
    TRANSACTION = "transaction"
    PROCESSOR = "processor"
    AGENT = "agent"
    PARTNER = "partner"
    ALERT = "alert"
    SUPPORT_REQUEST = "support_request"
    ADMIN = "admin"
    ACCOUNT = "account"
    KEY = "key"
    API_REQUEST = "api_request"


class SearchTypesRule(Rule):
    """Kinds of records, separated by commas."""

    example = "subscriber,agent"

    def check(self, value: str) -> str:
        if not set(value.split(",")) <= set(SearchType):
            raise InvalidValueError(f"must be one or more of {', '.join(SearchType)}")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"description": f"One or more of {', '.join(SearchType)}, separated by commas"}


class SearchQuery(msgspec.Struct, kw_only=True):
    q: Annotated[str, TextRule(MAX_SEARCH_LENGTH)]
    types: Annotated[str, SearchTypesRule()] | None = None
    limit: Annotated[int, IntegerRange(1, 50)] = 20


class SearchResult(msgspec.Struct, kw_only=True):
    """A record that matches. `id` is the serial if it is a card."""

    type: SearchType
    id: Id
    title: str
    subtitle: str | None
    status: Word | None


class SearchResults(msgspec.Struct, kw_only=True):
    data: list[SearchResult]
