"""Validation rules for body and query fields, attached to types with `Annotated`.

A rule checks a value of the right type and returns its normalized form. Its error messages never
repeat the value, because the value may be a secret.
"""

from abc import ABC, abstractmethod
from datetime import UTC, date, datetime
from enum import Enum
from functools import cache
from typing import Annotated, Any, Final

from tapgate_client import clock, ids, money, names, phone_numbers
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas import free_form


class InvalidValueError(Exception):
    """Value of the right type that violates a rule.

    `problems` maps paths, relative to the value, to messages.
    """

    def __init__(self, problems: str | dict[str, str]) -> None:
        super().__init__()
        self.problems = {"": problems} if isinstance(problems, str) else problems

    def prefix_paths(self, name: str) -> dict[str, str]:
        return {_join_path(name, path): message for path, message in self.problems.items()}


def _join_path(name: str, path: str) -> str:
    return f"{name}{path}" if not path or path.startswith("[") else f"{name}.{path}"


class LogForm(Enum):
    """Form in which the request log keeps a value. Values in another form are masked."""

    #: Short, and not a PIN, a code, a phone number or a card number.
    WORD = "word"
    NUMBER = "number"


class Rule(ABC):
    """Validation rule for one kind of value. The OpenAPI document shows its example and schema."""

    example: Any
    #: Form in which the value is logged, or None if it may be secret or personal.
    log_form: LogForm | None = None
    #: A valid value's maximum size in JSON, including any escapes.
    max_json_bytes: int = 6 * 64

    @abstractmethod
    def check(self, value: Any) -> Any:
        """Return the normalized value, or raise InvalidValueError."""

    @abstractmethod
    def to_json_schema(self) -> dict[str, Any]:
        """Return the rule's JSON Schema keywords."""

    def for_currency(self, currency: str) -> "Rule":
        """Return the rule for this platform currency."""
        del currency
        return self


class TextRule(Rule):
    example = "text"

    def __init__(self, maximum: int, *, minimum: int = 1, example: str | None = None) -> None:
        self.maximum = maximum
        self.minimum = minimum
        self.example = example or self.example
        self.max_json_bytes = 12 * maximum

    def check(self, value: str) -> str:
        if not self.minimum <= len(value) <= self.maximum:
            raise InvalidValueError(f"must have {self.minimum} to {self.maximum} characters")
        if "\0" in value:
            raise InvalidValueError("must not contain NUL or unpaired surrogates")
        if value.isspace():
            raise InvalidValueError("must not be blank")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"minLength": self.minimum, "maxLength": self.maximum}


class IdempotencyKeyRule(TextRule):
    """Idempotency key for a request that moves money."""

    log_form = LogForm.WORD
    example = "order-1042"

    def __init__(self) -> None:
        super().__init__(64)


class ReferenceRule(TextRule):
    """ID or reference. A malformed ID is not invalid: its record is not found."""

    log_form = LogForm.WORD


class NameRule(TextRule):
    """Name that only staff see. Leading and trailing whitespace is removed."""

    example = "Kamara Stores"

    def check(self, value: str) -> str:
        return super().check(value).strip()


#: ASCII characters that no name has. The pattern in the OpenAPI document excludes these, because
#: not all regular expressions know the letters of all languages.
_NO_PERSON_NAME: Final = r"\x00-\x1f!-&(-,./-@\[-`{-\x7f"
_NO_BUSINESS_NAME: Final = r"\x00-\x1f!-%(-,./:-@\[-`{-\x7f"


class PersonNameRule(Rule):
    """Customer or child name, which appears in other customers' messages."""

    example = "Aminata"
    max_json_bytes = 12 * names.MAX_NAME_LENGTH
    _characters = (
        "letters, marks, spaces, apostrophes and hyphens, and a period at the end of a word"
    )
    _excluded = _NO_PERSON_NAME

    def check(self, value: str) -> str:
        if not 0 < len(value) <= names.MAX_NAME_LENGTH:
            raise InvalidValueError(f"must have 1 to {names.MAX_NAME_LENGTH} characters")
        # Only spaces are removed: a line break is never part of a name.
        name = value.strip(" ")
        if not self._is_valid(name):
            raise InvalidValueError(f"must have only {self._characters}")
        return name

    def _is_valid(self, name: str) -> bool:
        return names.is_person_name(name)

    def to_json_schema(self) -> dict[str, Any]:
        return {
            "minLength": 1,
            "maxLength": names.MAX_NAME_LENGTH,
            "pattern": rf"^([^{self._excluded}]|\.[ -])*[^{self._excluded}]\.?$",
            "description": f"{self._characters[0].upper()}{self._characters[1:]}",
        }


class BusinessNameRule(PersonNameRule):
    """Merchant, agent or partner name, which appears in customers' messages."""

    example = "Kamara Stores"
    _characters = (
        "letters, digits, marks, spaces, apostrophes, hyphens and &, and a period at the end of a"
        " word"
    )
    _excluded = _NO_BUSINESS_NAME

    def _is_valid(self, name: str) -> bool:
        return names.is_business_name(name)


class Choice(Rule):
    """One of a fixed set of strings, for fields that accept only some values of an enum.

    `Annotated[AlertStatus, Choice(AlertStatus.RESOLVED, ...)]`. A field whose type is an enum has
    the rule of `get_enum_rule`. `name` is the enum's name in the OpenAPI document. On a response
    field the rule only describes the value.
    """

    log_form = LogForm.WORD

    def __init__(self, *words: str, name: str | None = None) -> None:
        self.values = words
        self.name = name
        self._allowed = frozenset(words)
        self.example = words[0]
        self.max_json_bytes = 6 * max(map(len, words))

    def check(self, value: str) -> str:
        if value not in self._allowed:
            raise InvalidValueError(f"must be one of {', '.join(self.values)}")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"enum": [str(word) for word in self.values]}


@cache
def get_enum_rule(kind: type[Enum]) -> Choice:
    """Return the rule for fields whose type is a string enum."""
    return Choice(*(member.value for member in kind), name=kind.__name__)


class IntegerRange(Rule):
    """Integer within an inclusive range: `Annotated[int, IntegerRange(1, 3)]`."""

    log_form = LogForm.NUMBER

    def __init__(self, minimum: int = -(2**63), maximum: int = 2**63 - 1) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.example = max(minimum, min(1, maximum))

    def check(self, value: int) -> int:
        if not self.minimum <= value <= self.maximum:
            raise InvalidValueError(f"must be between {self.minimum} and {self.maximum}")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"minimum": self.minimum, "maximum": self.maximum}


class ListLength(Rule):
    """Allowed number of list items: `Annotated[list[Text], ListLength(1, 20)]`."""

    def __init__(self, minimum: int, maximum: int) -> None:
        self.minimum = minimum
        self.maximum = maximum

    def check(self, value: list[Any]) -> list[Any]:
        if not self.minimum <= len(value) <= self.maximum:
            raise InvalidValueError(f"must have {self.minimum} to {self.maximum} items")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"minItems": self.minimum, "maxItems": self.maximum}


class Digits(Rule):
    """PIN or one-time code with an exact number of ASCII digits."""

    def __init__(self, count: int, *, example: str) -> None:
        self.count = count
        self.example = example

    def check(self, value: str) -> str:
        if len(value) != self.count or not (value.isascii() and value.isdigit()):
            raise InvalidValueError(f"must be {self.count} digits")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": f"^[0-9]{{{self.count}}}$", "description": f"{self.count} digits"}


class PhoneRule(Rule):
    """International phone number. The gateway also checks the country code."""

    example = "+23276123456"

    def check(self, value: str) -> str:
        try:
            return phone_numbers.remove_separators(value)
        except phone_numbers.PhoneNumberError as error:
            raise InvalidValueError(str(error)) from None

    def to_json_schema(self) -> dict[str, Any]:
        return {
            "maxLength": phone_numbers.MAX_TEXT_LENGTH,
            "description": "E.164 format. Spaces and punctuation are removed.",
        }


class EmailRule(Rule):
    """Email address.

    The check catches typos. Only a delivered message proves that an address exists. The
    address is normalized to lowercase.
    """

    example = "aminata@example.com"
    max_json_bytes = 12 * 254

    def __init__(self, *, allow_single_label: bool = False) -> None:
        self._min_labels = 1 if allow_single_label else 2

    def check(self, value: str) -> str:
        local, _, domain = value.rpartition("@")
        labels = domain.split(".")
        if (
            not 0 < len(local) <= 64
            or len(value) > 254
            or not value.isprintable()
            or any(character in value for character in ' "(),:;<>[\\]')
            or "@" in local
            or len(labels) < self._min_labels
            or not all(labels)
        ):
            raise InvalidValueError("must be an email address")
        return value.lower()

    def to_json_schema(self) -> dict[str, Any]:
        return {"format": "email", "maxLength": 254}


class AmountRule(Rule):
    """Amount in a request: a decimal string in major units, normalized for the currency."""

    log_form = LogForm.NUMBER
    example = "500.00"

    def __init__(self, *, allow_zero: bool = False, currency: str = "SLE") -> None:
        self._allow_zero = allow_zero
        self._currency = currency

    def for_currency(self, currency: str) -> "AmountRule":
        return AmountRule(allow_zero=self._allow_zero, currency=currency)

    def check(self, value: str) -> str:
        try:
            minor = money.parse(value, self._currency, allow_zero=self._allow_zero)
        except money.AmountError as error:
            raise InvalidValueError(str(error)) from None
        return money.format_decimal(minor, self._currency)

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": r"^[0-9]+(\.[0-9]+)?$", "description": "Decimal amount in major units"}


class IdRule(Rule):
    """ID of one record type, for fields where a malformed ID is an invalid value."""

    log_form = LogForm.WORD

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.example = ids.encode(prefix, 1 << 58)

    def check(self, value: str) -> str:
        if ids.decode(self._prefix, value) is None:
            raise InvalidValueError(f"must be an ID that starts with {self._prefix}")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": f"^{self._prefix}[0-9a-z]{{13}}$"}


class CurrencyRule(Rule):
    """The platform's currency.

    A request in a different currency is rejected, because its amount would be misinterpreted.
    """

    log_form = LogForm.WORD

    def __init__(self, currency: str = "SLE") -> None:
        self._currency = currency
        self.example = currency

    def for_currency(self, currency: str) -> "CurrencyRule":
        return CurrencyRule(currency)

    def check(self, value: str) -> str:
        if value != self._currency:
            raise ApiError(
                Code.CURRENCY_NOT_SUPPORTED, f"This platform supports only {self._currency}."
            )
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"description": "The platform currency's ISO 4217 code"}


class DateRule(Rule):
    example = "1990-01-31"
    log_form: LogForm | None = LogForm.WORD

    def check(self, value: str) -> str:
        try:
            # `fromisoformat` accepts other ISO 8601 forms too; the API accepts only YYYY-MM-DD.
            if len(value) != 10 or value[4] != "-" or value[7] != "-":
                raise ValueError
            return date.fromisoformat(value).isoformat()
        except ValueError:
            raise InvalidValueError("must be a date such as 2026-01-31") from None

    def to_json_schema(self) -> dict[str, Any]:
        return {"format": "date"}


class BirthDateRule(DateRule):
    log_form = None  # personal


class TimestampRule(Rule):
    log_form = LogForm.WORD
    example = "2027-01-31T12:00:00.000Z"

    def check(self, value: str) -> str:
        try:
            parsed = datetime.fromisoformat(value)
            if parsed.tzinfo is None or len(value) > 40:
                raise ValueError
            return clock.format_rfc3339(parsed.astimezone(UTC))
        except (ValueError, OverflowError):
            raise InvalidValueError("must be a time such as 2026-01-31T12:00:00Z") from None

    def to_json_schema(self) -> dict[str, Any]:
        return {"format": "date-time"}


class CardSerialRule(Rule):
    log_form = LogForm.WORD
    example = "TAP-000001"

    def check(self, value: str) -> str:
        if (
            not 1 <= len(value) <= 32
            or not value.isascii()
            or not value.replace("-", "0").isalnum()
        ):
            raise InvalidValueError("must be 1 to 32 letters, digits or dashes")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {
            "pattern": "^[A-Za-z0-9-]{1,32}$",
            "description": "1 to 32 letters, digits or dashes",
        }


class ObjectRule(Rule):
    """Free-form JSON object that the platform stores."""

    max_json_bytes = 6 * free_form.MAX_BYTES

    def __init__(self) -> None:
        self.example = {"order": "A-17"}

    def check(self, value: dict[str, Any]) -> dict[str, Any]:
        problem = free_form.find_problem(value)
        if problem is not None:
            raise InvalidValueError(problem)
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"description": "At most 4 KiB. Integers up to 2^53, other numbers up to 1e15."}


TEXT_RULE = TextRule(255)
INTEGER_RULE = IntegerRange()
OBJECT_RULE = ObjectRule()

Text = Annotated[str, TEXT_RULE]
Reference = Annotated[str, ReferenceRule(255)]
AddressText = Annotated[str, TextRule(255, example="12 Siaka Stevens Street, Freetown")]
CurrencyReference = Annotated[str, ReferenceRule(255, example="SLE")]
SearchText = Annotated[str, TextRule(255, minimum=3, example="Kamara")]
PersonName = Annotated[str, PersonNameRule()]
BusinessName = Annotated[str, BusinessNameRule()]
Label = Annotated[str, NameRule(255)]  # a name that only staff see
FreeText = Annotated[str, TextRule(500)]
Description = Annotated[str, TextRule(500, example="Float for the weekend")]
ReasonText = Annotated[str, TextRule(500, example="Requested by the customer")]
IdempotencyKey = Annotated[str, IdempotencyKeyRule()]
Password = Annotated[str, TextRule(255, minimum=12, example="a long pass phrase")]
Phone = Annotated[str, PhoneRule()]
Email = Annotated[str, EmailRule()]
CompanyEmail = Annotated[str, EmailRule(allow_single_label=True)]  # allows ada@intranet
Pin = Annotated[str, Digits(4, example="4071")]
NewPin = Annotated[str, Digits(4, example="8352")]  # differs from Pin in examples
OneTimeCode = Annotated[str, Digits(6, example="402917")]
Currency = Annotated[str, CurrencyRule()]
Amount = Annotated[str, AmountRule()]
AmountOrZero = Annotated[str, AmountRule(allow_zero=True)]
Date = Annotated[str, DateRule()]
BirthDate = Annotated[str, BirthDateRule()]
Timestamp = Annotated[str, TimestampRule()]
CardSerial = Annotated[str, CardSerialRule()]
Metadata = Annotated[dict[str, Any], OBJECT_RULE]
