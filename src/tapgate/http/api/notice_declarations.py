"""Notice declarations: which endpoints tell the affected person, and why others do not.

Every endpoint with which someone changes a subscriber, a card, a wallet or an agent declares
`notices=`, or `unnoticed=` with the reason for none.
"""

from enum import StrEnum
from typing import Final

from tapgate.http.endpoint import Endpoint

#: Tags of the endpoints about what subscribers and agents have.
_PERSONAL_TAGS: Final = frozenset({"Subscribers", "Cards", "Wallet", "Agents"})


class Unnoticed(StrEnum):
    """Reason why an endpoint that changes what people have sends no notice."""

    NEW = "The person has no account yet"
    RECEIPT = "The parties authorize it or get a receipt"
    CODE = "The code that it sends tells the person"
    OUTCOME = "Another message reports the outcome"
    STOCK = "It concerns cards or keys that the platform holds"
    NO_CHANGE = "It changes no number, PIN, card, status, money or access"


def requires_notice_declaration(endpoint: Endpoint) -> bool:
    """Return whether an endpoint must declare its notices or why it has none."""
    return endpoint.method != "GET" and (endpoint.tag in _PERSONAL_TAGS or endpoint.moves_money)
