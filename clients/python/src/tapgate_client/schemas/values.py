"""Types of text in response fields.

A type says what the field contains: its example, its JSON Schema format, and whether the request
log keeps it. A field of type `str` has none of these: it is free text, and the request log masks
it.
"""

from typing import Annotated, Final

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
#: Amount that is not logged, because it says how much money someone has.
BalanceAmount = Annotated[str, TextType(example="500.00")]
EmailAddress = Annotated[str, TextType(example="aminata@example.com", json_format="email")]
Url = Annotated[str, TextType(example="https://shop.example/tapgate", json_format="uri")]
BirthDay = Annotated[str, TextType(example="1990-01-31", json_format="date")]


class Example:
    """Example of one field: `kcv: Annotated[str, Example("66E94BFDE4FB")]`."""

    def __init__(self, value: str | int) -> None:
        self.value = value
