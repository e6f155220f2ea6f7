"""The time a statement is for."""

import re
from datetime import date, timedelta

from tapgate.messenger.understanding.reading.digits import tidy
from tapgate.messenger.understanding.spelling import plain

Period = tuple[date, date]

_MONTHS = {
    plain(name): month
    for month, names in enumerate(
        """january jan janvier janv|february feb février fevrier fev févr|march mar mars
        |april apr avril avr|may mai|june jun juin|july jul juillet juil|august aug août aout
        |september sept sep septembre|october oct octobre|november nov novembre
        |december dec décembre decembre""".split("|"),
        start=1,
    )
    for name in names.split()
}
_DAY = r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})|([0-9]{1,2})[/.]([0-9]{1,2})[/.]([0-9]{4})"
_DAYS = re.compile(_DAY)
_MONTH_AND_YEAR = re.compile(r"(?:^|\D)((?:19|20)[0-9]{2})-([0-9]{1,2})(?![0-9-])")
_YEAR = re.compile(r"(?<![0-9])((?:19|20)[0-9]{2})(?![0-9])")
_LAST_MONTHS = re.compile(
    r"\b(?:last|past|previous)\s+([0-9]{1,2})\s+months?|\b([0-9]{1,2})\s+(?:derniers?\s+)?mois"
)
_LAST_DAYS = re.compile(
    r"\b(?:last|past|previous)\s+([0-9]{1,3})\s+days?|\b([0-9]{1,3})\s+(?:derniers?\s+)?jours"
)


def period(text: str, today: date) -> Period | None:
    """First and last day, both within it, none after today. None: not said, or in doubt."""
    said = tidy(text).lower()
    try:
        if _DAYS.search(said) or _MONTH_AND_YEAR.search(said):
            found = _dates(said, today)
        else:
            found = _counted(said, today) or _named(said, today)
    except (ValueError, OverflowError):
        return None
    if found is None or found[0] > found[1] or found[0] > today:
        return None
    return found[0], min(found[1], today)


def _dates(said: str, today: date) -> Period | None:
    days = [_day(match) for match in _DAYS.finditer(said)]
    if len(days) == 2:
        return days[0], days[1]
    if len(days) == 1 and not re.search(r"\b(?:until|till|before|jusqu|avant)", said):
        since = re.search(r"\b(?:since|from|depuis|à partir|a partir)\b", said)
        return days[0], today if since else days[0]
    months = [(int(y), int(m)) for y, m in _MONTH_AND_YEAR.findall(said)] if not days else []
    return _month(*months[0]) if len(months) == 1 else None


def _day(match: re.Match[str]) -> date:
    year, month, day, day_first, month_second, year_last = match.groups()
    if year is not None:
        return date(int(year), int(month), int(day))
    return date(int(year_last), int(month_second), int(day_first))


def _counted(said: str, today: date) -> Period | None:
    months = _LAST_MONTHS.search(said)
    if months is not None:
        count = int(months[1] or months[2])
        return (_months_before(today, count), today) if 1 <= count <= 24 else None
    days = _LAST_DAYS.search(said)
    if days is not None:
        count = int(days[1] or days[2])
        return (today - timedelta(days=count - 1), today) if count >= 1 else None
    return None


def _named(said: str, today: date) -> Period | None:
    words = plain(said)
    for name, found in _common(today).items():
        if re.search(rf"\b{name}\b", words):
            return found
    polite = words.replace("may i ", "")
    months = [_MONTHS[word] for word in polite.split() if word in _MONTHS]
    years = [int(year) for year in _YEAR.findall(said)]
    if len(years) > 1 or not 1 <= len(months) <= 2:
        return _year(years[0]) if len(years) == 1 and not months else None
    last_year = years[0] if years else _latest(months[-1], today)
    first_year = last_year - 1 if months[0] > months[-1] else last_year
    return _month(first_year, months[0])[0], _month(last_year, months[-1])[1]


def _common(today: date) -> dict[str, Period]:
    monday = today - timedelta(days=today.weekday())
    previous = today.replace(day=1) - timedelta(days=1)
    named = {
        "this month|ce mois|mois en cours|current month": _month(today.year, today.month),
        "last month|previous month|past month|mois dernier|mois passe|dernier mois": _month(
            previous.year, previous.month
        ),
        "this year|cette anne|current year": _year(today.year),
        "last year|previous year|an dernier|anne derniere|anne passe": _year(today.year - 1),
        "this week|cette semaine": (monday, today),
        "last week|semaine derniere|semaine passe": (
            monday - timedelta(days=7),
            monday - timedelta(days=1),
        ),
        "yesterday|hier": (today - timedelta(days=1), today - timedelta(days=1)),
        "today|aujourdhui": (today, today),
    }
    return {f"(?:{_spelled(names)})": days for names, days in named.items()}


def _spelled(names: str) -> str:
    return "|".join(plain(name) for name in names.split("|"))


def _month(year: int, month: int) -> Period:
    first = date(year, month, 1)
    after = date(year + month // 12, month % 12 + 1, 1)
    return first, after - timedelta(days=1)


def _year(year: int) -> Period:
    return date(year, 1, 1), date(year, 12, 31)


def _latest(month: int, today: date) -> int:
    """The year of the last time it was that month."""
    return today.year if month <= today.month else today.year - 1


def _months_before(today: date, count: int) -> date:
    """The first day of the time: three months before 15 March begin on 15 December."""
    year, month = divmod(today.year * 12 + today.month - 1 - count, 12)
    last = _month(year, month + 1)[1].day
    return date(year, month + 1, min(today.day, last))
