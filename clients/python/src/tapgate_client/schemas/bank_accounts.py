"""Bank accounts of merchants, partners, agents and the platform."""

import re
from enum import StrEnum
from typing import Annotated, Any, Final

import msgspec

from tapgate_client.schemas.fields import InvalidValueError, LogForm, NameRule, Reference, Rule
from tapgate_client.schemas.owners import OwnerIdField
from tapgate_client.schemas.pagination import PageQuery
from tapgate_client.schemas.values import Example, Id, Time, Word


class BankAccountOwner(StrEnum):
    PROCESSOR = "processor"
    PARTNER = "partner"
    AGENT = "agent"
    PLATFORM = "platform"


class BankAccountStatus(StrEnum):
    UNVERIFIED = "unverified"
    VERIFIED = "verified"
    BLOCKED = "blocked"


class BankAccountNumberRule(Rule):
    """IBAN or another account number. Spaces are removed and letters become capital letters."""

    example = "GB33BUKB20201555555555"
    max_json_bytes = 256
    _pattern: Final = re.compile(r"[0-9A-Z][0-9A-Z/.-]{2,33}", re.ASCII)

    def check(self, value: str) -> str:
        number = value.replace(" ", "").upper()
        if self._pattern.fullmatch(number) is None:
            raise InvalidValueError("must have 3 to 34 letters, digits, dots, slashes or hyphens")
        return number

    def to_json_schema(self) -> dict[str, Any]:
        return {"minLength": 3, "maxLength": 64}


class BankCodeRule(Rule):
    """BIC, or the bank's code in the national clearing system."""

    example = "BUKBGB22"
    log_form = LogForm.WORD
    max_json_bytes = 64
    _pattern: Final = re.compile(r"[0-9A-Z][0-9A-Z-]{0,27}", re.ASCII)

    def check(self, value: str) -> str:
        code = value.replace(" ", "").upper()
        if self._pattern.fullmatch(code) is None:
            raise InvalidValueError("must have 1 to 28 letters, digits or hyphens")
        return code

    def to_json_schema(self) -> dict[str, Any]:
        return {"minLength": 1, "maxLength": 32}


HolderName = Annotated[str, NameRule(70)]


class BankAccountRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Bank account. `number` is complete only in the record of one account.

    In lists, it has the last four characters.
    """

    id: Id
    owner_type: BankAccountOwner
    owner_id: Id | None
    owner_name: str | None
    holder_name: str
    bank_code: Word
    bank_name: str | None
    number: Annotated[str, Example("5555")]
    status: BankAccountStatus
    block_reason: str | None
    currency: Word
    created_by: Id
    verified_by: Id | None
    verified_at: Time | None
    created_at: Time


class NewBankAccount(msgspec.Struct, kw_only=True):
    """Bank account of an owner, or with `owner_type` `platform` of the platform itself."""

    owner_type: BankAccountOwner | None = None
    owner_id: Reference | None = None
    holder_name: HolderName
    bank_code: Annotated[str, BankCodeRule()]
    bank_name: HolderName | None = None
    number: Annotated[str, BankAccountNumberRule()]


class BankAccountFilters(PageQuery, kw_only=True):
    owner_id: OwnerIdField | None = None
    owner_type: BankAccountOwner | None = None
    status: BankAccountStatus | None = None
