"""Parser for statement periods."""

import re
from datetime import date, timedelta

from tapgate.messenger.understanding.normalization import normalize_digits, normalize_text

Period = tuple[date, date]

_MONTH_NUMBERS = {
    normalize_text(name): month
    for month, names in enumerate(
        """january jan janvier janv|february feb février fevrier fev févr|march mar mars
        |april apr avril avr|may mai|june jun juin|july jul juillet juil|august aug août aout
        |september sept sep septembre|october oct octobre|november nov novembre
        |december dec décembre decembre""".split("|"),
        start=1,
    )
    for name in names.split()
}
_DAY_REGEX = r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})|([0-9]{1,2})[/.]([0-9]{1,2})[/.]([0-9]{4})"
_DAY_PATTERN = re.compile(_DAY_REGEX)
_YEAR_MONTH_PATTERN = re.compile(r"(?:^|\D)((?:19|20)[0-9]{2})-([0-9]{1,2})(?![0-9-])")
_YEAR_PATTERN = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2})(?![0-9])")
_LAST_MONTHS_PATTERN = re.compile(
    r"\b(?:last|past|previous)\s+([0-9]{1,2})\s+months?|\b([0-9]{1,2})\s+(?:derniers?\s+)?mois"
)
_LAST_DAYS_PATTERN = re.compile(
    r"\b(?:last|past|previous)\s+([0-9]{1,3})\s+days?|\b([0-9]{1,3})\s+(?:derniers?\s+)?jours"
)


def parse_period(text: str, today: date) -> Period | None:
    """Return the first and last day of the period in the text, inclusive and capped at today.

    Return None if the text names no period, is ambiguous, or names a future period.
    """
    message = normalize_digits(text).lower()
    try:
        if _DAY_PATTERN.search(message) or _YEAR_MONTH_PATTERN.search(message):
            period = _parse_dates(message, today)
        else:
            period = _parse_relative(message, today) or _parse_named(message, today)
    except (ValueError, OverflowError):
        return None
    if period is None or period[0] > period[1] or period[0] > today:
        return None
    return period[0], min(period[1], today)


def _parse_dates(text: str, today: date) -> Period | None:
    days = [_to_date(match) for match in _DAY_PATTERN.finditer(text)]
    if len(days) == 2:
        return days[0], days[1]
    if len(days) == 1 and not re.search(r"\b(?:until|till|before|jusqu|avant)", text):
        since = re.search(r"\b(?:since|from|depuis|à partir|a partir)\b", text)
        return days[0], today if since else days[0]
    months = [(int(y), int(m)) for y, m in _YEAR_MONTH_PATTERN.findall(text)] if not days else []
    return _build_month(*months[0]) if len(months) == 1 else None


def _to_date(match: re.Match[str]) -> date:
    year, month, day, day_first, month_second, year_last = match.groups()
    if year is not None:
        return date(int(year), int(month), int(day))
    return date(int(year_last), int(month_second), int(day_first))


def _parse_relative(text: str, today: date) -> Period | None:
    months = _LAST_MONTHS_PATTERN.search(text)
    if months is not None:
        count = int(months[1] or months[2])
        return (_subtract_months(today, count), today) if 1 <= count <= 24 else None
    days = _LAST_DAYS_PATTERN.search(text)
    if days is not None:
        count = int(days[1] or days[2])
        return (today - timedelta(days=count - 1), today) if count >= 1 else None
    return None


def _parse_named(text: str, today: date) -> Period | None:
    words = normalize_text(text)
    for name, period in _build_common_periods(today).items():
        if re.search(rf"\b{name}\b", words):
            return period
    without_may_i = words.replace("may i ", "")
    months = [_MONTH_NUMBERS[word] for word in without_may_i.split() if word in _MONTH_NUMBERS]
    years = [int(year) for year in _YEAR_PATTERN.findall(text)]
    if len(years) > 1 or not 1 <= len(months) <= 2:
        return _build_year(years[0]) if len(years) == 1 and not months else None
    last_year = years[0] if years else _get_latest_year(months[-1], today)
    first_year = last_year - 1 if months[0] > months[-1] else last_year
    return _build_month(first_year, months[0])[0], _build_month(last_year, months[-1])[1]


def _build_common_periods(today: date) -> dict[str, Period]:
    monday = today - timedelta(days=today.weekday())
    last_of_previous_month = today.replace(day=1) - timedelta(days=1)
    named = {
        "this month|ce mois|mois en cours|current month": _build_month(today.year, today.month),
        "last month|previous month|past month|mois dernier|mois passe|dernier mois": _build_month(
            last_of_previous_month.year, last_of_previous_month.month
        ),
        "this year|cette anne|current year": _build_year(today.year),
        "last year|previous year|an dernier|anne derniere|anne passe": _build_year(today.year - 1),
        "this week|cette semaine": (monday, today),
        "last week|semaine derniere|semaine passe": (
            monday - timedelta(days=7),
            monday - timedelta(days=1),
        ),
        "yesterday|hier": (today - timedelta(days=1), today - timedelta(days=1)),
        "today|aujourdhui": (today, today),
    }
    return {f"(?:{_normalize_names(names)})": period for names, period in named.items()}


def _normalize_names(names: str) -> str:
    return "|".join(normalize_text(name) for name in names.split("|"))


def _build_month(year: int, month: int) -> Period:
    first = date(year, month, 1)
    next_month_start = date(year + month // 12, month % 12 + 1, 1)
    return first, next_month_start - timedelta(days=1)


def _build_year(year: int) -> Period:
    return date(year, 1, 1), date(year, 12, 31)


def _get_latest_year(month: int, today: date) -> int:
    """Return the year of the month's most recent occurrence."""
    return today.year if month <= today.month else today.year - 1


def _subtract_months(today: date, count: int) -> date:
    """Return the date `count` months earlier: three months before 15 March is 15 December."""
    year, month = divmod(today.year * 12 + today.month - 1 - count, 12)
    last = _build_month(year, month + 1)[1].day
    return date(year, month + 1, min(today.day, last))
