"""Cards: the list, one card, new ones by the file, and what can be done with them."""

from tapgate.console.acts import Act, Field
from tapgate.console.site import Pages

pages = Pages()

_ONE = "/api/v1/cards/{serial}"
_SERIAL = Field("card_serial", "Serial number", hint="As it is printed on the card")

ACTS = (
    Act(
        name="card.link",
        endpoint="POST /api/v1/cards/link",
        title="Link a card",
        explains="The subscriber types the PIN, which is the card's from then on.",
        button="Link a card",
        fields=(
            Field("subscriber_id", "Subscriber", hint="Its identifier: sub_…"),
            _SERIAL,
            Field("pin", "The subscriber's PIN", "pin"),
        ),
        done="The card is linked.",
    ),
    Act(
        name="card.child",
        endpoint="POST /api/v1/cards/child",
        title="Give a child a card",
        explains="It spends from the parent's wallet, up to a daily limit and with its own PIN.",
        button="Add a child's card",
        fields=(
            Field("parent_subscriber_id", "Parent", hint="Its identifier: sub_…"),
            _SERIAL,
            Field("child_name", "The child's name"),
            Field("child_relationship", "Relationship", required=False),
            Field("daily_limit", "Daily limit", "money"),
            Field("parent_pin", "The parent's PIN", "pin"),
            Field("child_pin", "The child's PIN", "pin"),
        ),
        done="The child's card works.",
    ),
)
