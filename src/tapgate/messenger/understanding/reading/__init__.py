"""Parsers for amounts, payees, periods, names and list numbers in a user's text.

For a missing or ambiguous value, a parser returns None, or a struct in which the field is None.
"""

from tapgate.messenger.understanding.reading.amounts import parse_amount
from tapgate.messenger.understanding.reading.names import parse_list_number, parse_person_names
from tapgate.messenger.understanding.reading.payees import parse_card_serial, parse_phone
from tapgate.messenger.understanding.reading.periods import parse_period
from tapgate.messenger.understanding.reading.transfers import (
    ParsedTransfer,
    has_unsupported_amount,
    parse_payee,
    parse_payee_name,
    parse_transfer,
)

__all__ = [
    "ParsedTransfer",
    "has_unsupported_amount",
    "parse_amount",
    "parse_card_serial",
    "parse_list_number",
    "parse_payee",
    "parse_payee_name",
    "parse_period",
    "parse_person_names",
    "parse_phone",
    "parse_transfer",
]
