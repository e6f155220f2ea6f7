"""Amounts: integers in minor units internally, decimal strings in the API."""

import re
from functools import lru_cache

#: ISO 4217 currencies whose minor unit is not a hundredth.
_NON_TWO_DECIMAL_CURRENCIES = {
    **dict.fromkeys(
        "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(), 0
    ),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
    **dict.fromkeys("CLF UYW".split(), 4),
}

#: ISO 4217 currencies whose minor unit is a hundredth.
_TWO_DECIMAL_CURRENCIES = frozenset(
    """AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF
    CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD
    HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK
    MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD
    RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS
    UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG""".split()
)

_DECIMALS = dict.fromkeys(_TWO_DECIMAL_CURRENCIES, 2) | _NON_TWO_DECIMAL_CURRENCIES

#: Limits a submitted amount to less than 1,000,000,000,000 major units.
_MAX_MAJOR_DIGITS = 12

_HUNDREDTHS = [f".{cents:02d}" for cents in range(100)]

_AMOUNT_PATTERN = re.compile(r"([0-9]+)(?:\.([0-9]+))?", re.ASCII)


class AmountError(ValueError):
    """The amount is invalid. The message does not quote it."""


def get_decimals(currency: str) -> int:
    """Return a currency's ISO 4217 decimals; raise KeyError if it is unknown."""
    return _DECIMALS[currency]


def from_whole_units(units: int, currency: str) -> int:
    """Return an amount in minor units: `1000` becomes `100000` (SLE)."""
    scale: int = 10 ** get_decimals(currency)
    return units * scale


def is_currency(code: str) -> bool:
    return code in _DECIMALS


@lru_cache(maxsize=4096)  # the same amount is parsed when validated and when used
def parse(text: str, currency: str, *, allow_zero: bool = False) -> int:
    """Return an amount in minor units: `"500"` and `"500.00"` become `50000` (SLE).

    Raise AmountError if the text is not a valid amount in the currency.
    """
    digits = get_decimals(currency)
    match = _AMOUNT_PATTERN.fullmatch(text)
    if match is None:
        raise AmountError("must be a decimal number such as 500.00")
    whole, fraction = match[1].lstrip("0"), match[2] or ""
    if len(whole) > _MAX_MAJOR_DIGITS:
        raise AmountError(f"must have at most {_MAX_MAJOR_DIGITS} digits before the decimal point")
    if len(fraction) > digits:
        raise AmountError(f"must have at most {digits} decimal places for {currency}")
    minor = int((whole or "0") + fraction.ljust(digits, "0"))
    if minor == 0 and not allow_zero:
        raise AmountError("must be greater than zero")
    return minor


def format_decimal(minor: int, currency: str) -> str:
    """Format an amount as a plain decimal: `123450` becomes `"1234.50"` (SLE)."""
    digits = _DECIMALS[currency]
    sign, minor = ("-", -minor) if minor < 0 else ("", minor)
    if digits == 2:
        return f"{sign}{minor // 100}{_HUNDREDTHS[minor % 100]}"
    if digits == 0:
        return f"{sign}{minor}"
    whole, fraction = divmod(minor, 10**digits)
    return f"{sign}{whole}.{fraction:0{digits}d}"


#: Separators in French, with no-break spaces, so that a phone does not wrap an amount.
_FRENCH_SEPARATORS = str.maketrans({",": "\N{NO-BREAK SPACE}", ".": ",", " ": "\N{NO-BREAK SPACE}"})


def format_money(minor: int, currency: str, language: str = "en") -> str:
    """Format an amount for people: `123450` becomes `"1,234.50 SLE"`, in French `"1 234,50 SLE"`.

    The result has at least two decimals, as the API specifies, even if the currency has none.
    """
    digits = get_decimals(currency)
    sign, minor = ("-", -minor) if minor < 0 else ("", minor)
    if digits == 2:
        text = f"{sign}{minor // 100:,}.{minor % 100:02d} {currency}"
    else:
        whole, fraction = divmod(minor, 10**digits)
        decimals = f"{fraction:0{digits}d}" if digits else ""
        text = f"{sign}{whole:,}.{decimals.ljust(2, '0')} {currency}"
    return text.translate(_FRENCH_SEPARATORS) if language == "fr" else text


def to_float(minor: int, currency: str) -> float:
    """Return an amount as a float: `50750` becomes `507.5` (SLE).

    Only for the `details` of INSUFFICIENT_FUNDS and INSUFFICIENT_FLOAT, which contain JSON numbers.
    """
    return minor / int(10 ** get_decimals(currency))


def apply_rate(minor: int, rate_millipercent: int) -> int:
    """Apply a rate in thousandths of a percent, rounded half up to the minor unit."""
    return (minor * rate_millipercent + 50_000) // 100_000
