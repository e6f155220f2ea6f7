"""Types of text in response fields.

A type says what the field contains: its example, its JSON Schema format, and whether the request
log keeps it. A field of type `str` has none of these: it is free text, and the request log masks
it.
"""

from typing import Annotated, Final

from tapgate_client import ids
from tapgate_client.schemas.fields import LogForm


class TextType:
    """A response field's example, JSON Schema format and log form."""

    def __init__(
        self,
        *,
        example: str | None = None,
        json_format: str | None = None,
        log_form: LogForm | None = None,
    ) -> None:
        self.example = example
        self.json_format = json_format
        self.log_form = log_form


_WORD: Final = TextType(log_form=LogForm.WORD)

#: Record ID. Examples have the record's prefix.
Id = Annotated[str, _WORD]
#: Tracing ID or idempotency key.
RequestId = Annotated[str, TextType(example="order-1042", log_form=LogForm.WORD)]
Serial = Annotated[str, TextType(example="TAP-000001", log_form=LogForm.WORD)]
#: Code of an installation among several books.
BookCode = Annotated[str, TextType(example="south", log_form=LogForm.WORD)]
#: Type, status or reference name, which is never personal.
Word = Annotated[str, _WORD]
#: RFC 3339, UTC.
Time = Annotated[
    str,
    TextType(example="2026-01-31T09:15:00.000Z", json_format="date-time", log_form=LogForm.WORD),
]
CalendarDate = Annotated[
    str, TextType(example="2026-01-31", json_format="date", log_form=LogForm.WORD)
]
#: Decimal amount in major units.
Money = Annotated[str, TextType(example="500.00", log_form=LogForm.NUMBER)]
Fee = Annotated[str, TextType(example="5.00", log_form=LogForm.NUMBER)]
CurrencyCode = Annotated[str, TextType(example="SLE", log_form=LogForm.WORD)]
#: Amount that is not logged, because it says how much money someone has.
BalanceAmount = Annotated[str, TextType(example="500.00")]
AccountBalance = Annotated[str, TextType(example="1250.00")]
EmailAddress = Annotated[str, TextType(example="aminata@example.com", json_format="email")]
#: Address without a constraint, unlike `AddressText` in requests.
Address = Annotated[str, TextType(example="12 Siaka Stevens Street, Freetown")]
PhoneNumber = Annotated[str, TextType(example="+23276123456")]
IpAddress = Annotated[str, TextType(example="203.0.113.7")]
Url = Annotated[str, TextType(example="https://shop.example/tapgate", json_format="uri")]
BirthDay = Annotated[str, TextType(example="1990-01-31", json_format="date")]
Name = Annotated[str, TextType(example="Kamara Stores")]
FirstName = Annotated[str, TextType(example="Aminata")]
LastName = Annotated[str, TextType(example="Kamara")]
HolderName = Annotated[str, TextType(example="Aminata Kamara")]
AdminId = Annotated[str, TextType(example=ids.encode(ids.ADMIN, 1 << 58))]
AdminName = Annotated[str, TextType(example="Ada Cole")]
ApprovalCode = Annotated[str, TextType(example="A1B2C3")]
#: Secret that only one response contains.
ShownSecret = Annotated[str, TextType(example="returned only once")]


class Example:
    """Example of one field: `kcv: Annotated[str, Example("66E94BFDE4FB")]`.

    A struct can also have `EXAMPLES`, a dictionary with examples by field, and
    `OMITTED_IN_EXAMPLES`, the fields that only some of its examples could have.
    """

    def __init__(self, value: str | int) -> None:
        self.value = value


#: Current password in a request. It may be shorter than a new one.
CurrentPassword = Annotated[str, Example("a long pass phrase")]
