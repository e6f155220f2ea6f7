"""What a value in a body or a query must be like, said once as an annotated type.

A rule checks a value that already has the right type and gives back the form that the platform
keeps. Its sentences never repeat the value: it may be a secret.
"""

from abc import ABC, abstractmethod
from datetime import UTC, date, datetime
from typing import Annotated, Any

import phonenumbers

from tapgate import clock, ids, money
from tapgate.edge import free_form
from tapgate.errors import ApiError, Code


class InvalidValueError(Exception):
    """A well-typed value that breaks a rule: path below the value -> sentence."""

    def __init__(self, problems: str | dict[str, str]) -> None:
        super().__init__()
        self.problems = {"": problems} if isinstance(problems, str) else problems

    def prefix_paths(self, name: str) -> dict[str, str]:
        return {_join_path(name, path): sentence for path, sentence in self.problems.items()}


def _join_path(name: str, path: str) -> str:
    return f"{name}{path}" if not path or path.startswith("[") else f"{name}.{path}"


class Rule(ABC):
    """One kind of value. `example` and `schema` are what the interface description shows."""

    example: Any
    #: The most bytes that an acceptable value takes up in JSON, however it is escaped.
    max_json_bytes: int = 6 * 64

    @abstractmethod
    def check(self, value: Any) -> Any:
        """The value as it is kept, or Unacceptable."""

    @abstractmethod
    def to_json_schema(self) -> dict[str, Any]:
        """The rule in words of JSON Schema."""

    def for_currency(self, currency: str) -> "Rule":
        """The same rule on a platform that counts in this currency."""
        del currency
        return self


class TextRule(Rule):
    example = "text"

    def __init__(self, maximum: int, *, minimum: int = 1) -> None:
        self.maximum = maximum
        self.minimum = minimum
        self.max_json_bytes = 12 * maximum

    def check(self, value: str) -> str:
        if not self.minimum <= len(value) <= self.maximum:
            raise InvalidValueError(f"must have {self.minimum} to {self.maximum} characters")
        if "\0" in value:
            raise InvalidValueError("must not contain NUL or a lone surrogate")
        if value.isspace():
            raise InvalidValueError("must not be blank")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"minLength": self.minimum, "maxLength": self.maximum}


class IdempotencyKeyRule(TextRule):
    """A client's own name for a request that moves money."""

    example = "7d4f1c1e-3d0b-4f5e-9a53-0f6f3a1c2b4d"

    def __init__(self) -> None:
        super().__init__(64)


class NameRule(TextRule):
    """A person's name: blanks around it are slips of the pen."""

    example = "Aminata"

    def check(self, value: str) -> str:
        return super().check(value).strip()


class Choice(Rule):
    """One of these words: `Annotated[str, Choice("active", "suspended")]`.

    `name` is the name of the enum in the OpenAPI document. On a response field the rule describes
    the value and checks nothing.
    """

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


class IntegerRange(Rule):
    """A whole number from one to another: `Annotated[int, Whole(1, 3)]`."""

    def __init__(self, minimum: int = -(2**63), maximum: int = 2**63 - 1) -> None:
        self.minimum = minimum
        self.maximum = maximum
        self.example = max(minimum, min(1, maximum))

    def check(self, value: int) -> int:
        if not self.minimum <= value <= self.maximum:
            raise InvalidValueError(f"must be from {self.minimum} to {self.maximum}")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"minimum": self.minimum, "maximum": self.maximum}


class ListLength(Rule):
    """How many there may be in a list: `Annotated[list[Text], Count(1, 20)]`."""

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
    """A PIN or a one-time code: exactly that many ASCII digits."""

    def __init__(self, count: int, *, example: str) -> None:
        self.count = count
        self.example = example

    def check(self, value: str) -> str:
        if len(value) != self.count or not (value.isascii() and value.isdigit()):
            raise InvalidValueError(f"must be {self.count} digits")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": f"^[0-9]{{{self.count}}}$", "description": f"{self.count} digits"}


_MIN_PHONE_DIGITS, _MAX_PHONE_DIGITS = 7, 15


class PhoneRule(Rule):
    example = "+23276123456"
    _allowed_characters = frozenset("0123456789 -.()")

    def check(self, value: str) -> str:
        if (
            not value.startswith("+")
            or len(value) > 32
            or not self._allowed_characters.issuperset(value[1:])
        ):
            raise InvalidValueError(
                "must be a phone number in international form, such as +23276123456"
            )
        try:
            number = phonenumbers.parse(value)
        except phonenumbers.NumberParseException:
            raise InvalidValueError("is not a phone number of any country") from None
        shown = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
        # Numbering plans change faster than anybody's table of them: only E.164's own bounds.
        if not _MIN_PHONE_DIGITS <= len(shown) - 1 <= _MAX_PHONE_DIGITS:
            raise InvalidValueError(f"must have {_MIN_PHONE_DIGITS} to {_MAX_PHONE_DIGITS} digits")
        return shown

    def to_json_schema(self) -> dict[str, Any]:
        return {"maxLength": 32, "description": "E.164; spaces and dashes are removed"}


class EmailRule(Rule):
    """Good enough to catch a slip of the pen; only a delivered message proves an address."""

    example = "aminata@example.com"
    max_json_bytes = 12 * 254

    def __init__(self, *, within_a_company: bool = False) -> None:
        self._min_labels = 1 if within_a_company else 2

    def check(self, value: str) -> str:
        local, _, domain = value.rpartition("@")
        labels = domain.split(".")
        if (
            not 0 < len(local) <= 64
            or len(value) > 254
            or not value.isprintable()
            or any(sign in value for sign in ' "(),:;<>[\\]')
            or "@" in local
            or len(labels) < self._min_labels
            or not all(labels)
        ):
            raise InvalidValueError("must be an e-mail address")
        return value.lower()

    def to_json_schema(self) -> dict[str, Any]:
        return {"format": "email", "maxLength": 254}


class AmountRule(Rule):
    """Money in: a decimal string in major units, kept in the currency's plain form."""

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
        return {"pattern": r"^[0-9]+(\.[0-9]+)?$", "description": "Decimal, major units"}


class IdRule(Rule):
    """The id of one kind of record, where one that cannot be is a slip rather than nobody's."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self.example = ids.encode(prefix, 1 << 58)

    def check(self, value: str) -> str:
        if ids.decode(self._prefix, value) is None:
            raise InvalidValueError(f"must be an id that begins with {self._prefix}")
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"pattern": f"^{self._prefix}[0-9a-z]{{13}}$"}


class CurrencyRule(Rule):
    """The platform's own; a request that names another means another amount of money."""

    def __init__(self, currency: str = "SLE") -> None:
        self._currency = currency
        self.example = currency

    def for_currency(self, currency: str) -> "CurrencyRule":
        return CurrencyRule(currency)

    def check(self, value: str) -> str:
        if value != self._currency:
            raise ApiError(
                Code.CURRENCY_NOT_SUPPORTED, f"This platform's currency is {self._currency}"
            )
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {"description": "The platform's currency, ISO 4217"}


class DateRule(Rule):
    example = "1990-01-31"

    def check(self, value: str) -> str:
        try:
            # Only this form of the many that ISO 8601 has.
            if len(value) != 10 or value[4] != "-" or value[7] != "-":
                raise ValueError
            return date.fromisoformat(value).isoformat()
        except ValueError:
            raise InvalidValueError("must be a date such as 2026-01-31") from None

    def to_json_schema(self) -> dict[str, Any]:
        return {"format": "date"}


class TimestampRule(Rule):
    example = "2027-01-31T12:00:00.000Z"

    def check(self, value: str) -> str:
        try:
            moment = datetime.fromisoformat(value)
            if moment.tzinfo is None or len(value) > 40:
                raise ValueError
            return clock.format_rfc3339(moment.astimezone(UTC))
        except (ValueError, OverflowError):
            raise InvalidValueError("must be a time such as 2026-01-31T12:00:00Z") from None

    def to_json_schema(self) -> dict[str, Any]:
        return {"format": "date-time"}


class CardSerialRule(Rule):
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
    """A free-form JSON object that is stored."""

    max_json_bytes = 6 * free_form.MAX_BYTES

    def __init__(self) -> None:
        self.example = {"order": "A-17"}

    def check(self, value: dict[str, Any]) -> dict[str, Any]:
        problem = free_form.find_problem(value)
        if problem is not None:
            raise InvalidValueError(problem)
        return value

    def to_json_schema(self) -> dict[str, Any]:
        return {
            "description": "At most 4 KiB as stored; integers up to 2^53, other numbers up to 1e15"
        }


TEXT_RULE = TextRule(255)
INTEGER_RULE = IntegerRange()
OBJECT_RULE = ObjectRule()

Text = Annotated[str, TEXT_RULE]
SearchText = Annotated[str, TextRule(255, minimum=3)]
PersonName = Annotated[str, NameRule(255)]
FreeText = Annotated[str, TextRule(500)]
IdempotencyKey = Annotated[str, IdempotencyKeyRule()]
Password = Annotated[str, TextRule(255, minimum=12)]
Phone = Annotated[str, PhoneRule()]
Email = Annotated[str, EmailRule()]
CompanyEmail = Annotated[str, EmailRule(within_a_company=True)]  # ada@intranet
Pin = Annotated[str, Digits(4, example="4071")]
NewPin = Annotated[str, Digits(4, example="8352")]  # another one, in examples
OneTimeCode = Annotated[str, Digits(6, example="402917")]
Currency = Annotated[str, CurrencyRule()]
Amount = Annotated[str, AmountRule()]
AmountOrZero = Annotated[str, AmountRule(allow_zero=True)]
Date = Annotated[str, DateRule()]
Timestamp = Annotated[str, TimestampRule()]
CardSerial = Annotated[str, CardSerialRule()]
Metadata = Annotated[dict[str, Any], OBJECT_RULE]
