"""Times on pages: the viewer's zone and language, without waiting for a script."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tapgate.sites.console.times import describe_time, get_zone
from tapgate.sites.console.translation.translator import Language, get_translator

_NOW = datetime(2026, 3, 2, 1, 30, tzinfo=UTC)
_FREETOWN, _TOKYO = ZoneInfo("Africa/Freetown"), ZoneInfo("Asia/Tokyo")


@pytest.mark.parametrize(
    ("moment", "zone", "language", "expected"),
    [
        (datetime(2026, 3, 2, 1, 5, tzinfo=UTC), _FREETOWN, Language.EN, "Today 01:05"),
        (datetime(2026, 3, 1, 23, 5, tzinfo=UTC), _FREETOWN, Language.EN, "Yesterday 23:05"),
        (datetime(2026, 3, 1, 23, 5, tzinfo=UTC), _TOKYO, Language.EN, "Today 08:05"),
        (datetime(2026, 1, 31, 12, 0, tzinfo=UTC), _FREETOWN, Language.EN, "Jan 31, 12:00"),
        (datetime(2025, 12, 31, 16, 0, tzinfo=UTC), _TOKYO, Language.EN, "Jan 1, 01:00"),
        (datetime(2025, 12, 31, 16, 0, tzinfo=UTC), _FREETOWN, Language.EN, "Dec 31, 2025, 16:00"),
        (datetime(2026, 1, 31, 12, 0, tzinfo=UTC), _FREETOWN, Language.FR, "31 janv., 12:00"),
        (datetime(2025, 1, 31, 12, 0, tzinfo=UTC), _FREETOWN, Language.FR, "31 janv. 2025, 12:00"),
        (datetime(2026, 3, 1, 12, 0, tzinfo=UTC), _FREETOWN, Language.FR, "Hier 12:00"),
    ],
)
def test_time_is_described_in_the_zone_and_language_of_the_viewer(
    moment: datetime, zone: ZoneInfo, language: Language, expected: str
) -> None:
    assert describe_time(moment, _NOW, zone, get_translator(language)) == expected


def test_time_can_have_seconds() -> None:
    moment, translator = datetime(2026, 3, 2, 1, 5, 9, tzinfo=UTC), get_translator(Language.EN)
    described = describe_time(moment, _NOW, _FREETOWN, translator, with_seconds=True)
    assert described == "Today 01:05:09"


@pytest.mark.parametrize("name", [None, "", "Africa", "../../etc/passwd", "Nowhere/Land", "\0"])
def test_unknown_zone_is_ignored(name: str | None) -> None:
    assert get_zone(name) is None
