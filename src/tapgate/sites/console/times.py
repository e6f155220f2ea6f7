"""Times as people read them, in the viewer's time zone and language.

The texts are the same as those that `console.js` computes, so nothing changes when it runs.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from zoneinfo import ZoneInfo

from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from tapgate.sites.console.translation.translator import Language, Translator, source_text

#: Shown instead of a missing value. On phones, cells without a value are hidden.
DASH: Final = Markup('<span class="dash">–</span>')
MONTHS: Final = (
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
)  # fmt: skip
_JUST_NOW: Final = source_text("just now")
_NOW: Final = source_text("Now")
_IN_DURATION: Final = source_text("In {duration}")
_TIME_UNITS: Final = (
    (86_400, source_text("{count} day"), source_text("{count} days")),
    (3_600, source_text("{count} hour"), source_text("{count} hours")),
    (60, source_text("{count} minute"), source_text("{count} minutes")),
    (1, source_text("{count} second"), source_text("{count} seconds")),
)


def build_filters(translator: Translator) -> dict[str, Callable[..., Any]]:
    """Return the template filters for times, by name."""
    return {
        "format_time": pass_context(partial(_format_time, translator=translator)),
        "format_date": partial(_format_date, translator=translator),
        "format_expiry": pass_context(partial(_format_expiry, translator=translator)),
        "age": partial(format_age, translator=translator),
        "duration": partial(format_duration, translator=translator),
        "ago": partial(format_ago, translator=translator),
        "until": partial(format_until, translator=translator),
    }


def get_zone(name: str | None) -> ZoneInfo | None:
    """Return a time zone that a browser named, or None if there is no such zone."""
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, KeyError, OSError):
        return None


def describe_time(
    moment: datetime,
    now: datetime,
    zone: ZoneInfo,
    translator: Translator,
    *,
    with_seconds: bool = False,
) -> str:
    """Format a time: `Today 14:30`, `Nov 14, 14:30`, or in another year `Nov 14, 2025, 14:30`."""
    local, today = moment.astimezone(zone), now.astimezone(zone).date()
    if local.date() == today:
        day = translator.translate("Today")
    elif local.date() == today - timedelta(days=1):
        day = translator.translate("Yesterday")
    else:
        day = f"{_format_day(local, translator, with_year=local.year != today.year)},"
    return f"{day} {local:%H:%M:%S}" if with_seconds else f"{day} {local:%H:%M}"


def _format_day(moment: datetime, translator: Translator, *, with_year: bool) -> str:
    month = translator.translate(MONTHS[moment.month - 1])
    if translator.language == Language.EN:
        return f"{month} {moment.day}, {moment.year}" if with_year else f"{month} {moment.day}"
    return f"{moment.day} {month} {moment.year}" if with_year else f"{moment.day} {month}"


def _format_time(
    context: Context, moment: str | None, translator: Translator, *, with_seconds: bool = False
) -> Markup | str:
    if not moment:
        return DASH
    try:
        time = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    request = context["request"]
    text = describe_time(time, request.now, request.zone, translator, with_seconds=with_seconds)
    attribute = Markup(" data-seconds") if with_seconds else ""
    return Markup('<time datetime="{}"{}>{}</time>').format(moment, attribute, text)


def _format_date(date: str | None, translator: Translator) -> Markup | str:
    if not date:
        return DASH
    try:
        text = _format_day(datetime.fromisoformat(date), translator, with_year=True)
    except ValueError:
        return date
    return Markup('<time datetime="{}">{}</time>').format(date, text)


def _format_expiry(context: Context, moment: str, translator: Translator) -> Markup | str:
    """Format the last day of something that works until the end of a platform day."""
    zone = context["request"].context.services.settings.timezone
    last_day = datetime.fromisoformat(moment).astimezone(zone).date()
    return _format_date(last_day.isoformat(), translator)


def format_age(moment: str, now: datetime, translator: Translator) -> str:
    """Format the time since `moment` in the largest whole unit: `3 days`, or `just now`."""
    seconds = int((now - datetime.fromisoformat(moment)).total_seconds())
    if seconds < 60:
        return translator.translate(_JUST_NOW)
    size = next(unit[0] for unit in _TIME_UNITS if seconds >= unit[0])
    return format_duration(seconds - seconds % size, translator)


def format_duration(seconds: int, translator: Translator, *, in_days: bool = True) -> str:
    """Format a duration in the largest unit that is exact: `3 days`, or `36 hours`."""
    units = _TIME_UNITS if in_days else _TIME_UNITS[1:]
    size, one, other = next(unit for unit in units if seconds % unit[0] == 0)
    return translator.translate_plural(seconds // size, one, other)


def format_ago(moment: str, now: datetime, translator: Translator) -> str:
    """Format the time since `moment`: `3 days ago`, or `just now`."""
    age = format_age(moment, now, translator)
    if age == translator.translate(_JUST_NOW):
        return age
    return translator.translate("{age} ago", age=age)


def format_until(moment: str, now: datetime, translator: Translator) -> str:
    """Format the time until `moment`: `In 5 minutes`, or `Now`."""
    if datetime.fromisoformat(moment) <= now:
        return translator.translate(_NOW)
    return translator.translate(_IN_DURATION, duration=format_left(moment, now, translator))


def format_left(moment: str, now: datetime, translator: Translator) -> str:
    """Format the time that is left until `moment`: `5 minutes`."""
    seconds = max(round((datetime.fromisoformat(moment) - now).total_seconds()), 1)
    size = next(unit[0] for unit in _TIME_UNITS if seconds >= unit[0])
    return format_duration(round(seconds / size) * size, translator)
