"""Form fields that several actions share."""

from typing import Final

from tapgate.sites.console.form_fields import Field

REASON: Final = Field("reason", kind="long", hint="Saved in the audit log")
OPTIONAL_REASON: Final = REASON._replace(required=False)
PHONE: Final = Field(
    "phone_number", "Phone", "tel", hint="For example, 076 123 456, or +232 76 123 456"
)
AMOUNT: Final = Field("amount", kind="money", hint="For example, 5000")
MEMO: Final = Field("description", required=False, hint="Saved with the transaction")
NEW_PIN: Final = Field("new_pin", kind="pin", hint="4 digits")
CHANGED_PINS: Final = (Field("old_pin", "Current PIN", "pin"), NEW_PIN)
#: How long the old secret stays valid after a rotation.
GRACE: Final = Field(
    "grace_seconds",
    "Old secret expires",
    "whole_choice",
    (
        ("0", "Immediately"),
        ("3600", "In 1 hour"),
        ("21600", "In 6 hours"),
        ("86400", "In 24 hours"),
    ),
    value="0",
)
#: Reference of a deposit, by which it is matched with the bank statement.
BANK_REFERENCE: Final = Field("reference", required=False, hint="As on the bank statement")
#: To whom an API key or a webhook endpoint belongs.
OWNER: Final = Field(
    "owner_id",
    "Merchant, partner or agent",
    "picker",
    picks="processor,partner,agent",
    required=False,
)
