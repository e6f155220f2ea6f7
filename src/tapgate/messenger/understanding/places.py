"""Parser for the district, town or street that a person names or shares."""

import math
import re
from pathlib import Path
from typing import Final

from tapgate.messenger.understanding.normalization import normalize_digits, normalize_text
from tapgate.messenger.understanding.word_lists import read_entries

_MAX_LENGTH: Final = 60
#: A shared position farther from every known town is located by its address.
_MAX_TOWN_DISTANCE_KM: Final = 40
_KM_PER_DEGREE: Final = 111.2
_TOWNS: Final = {
    name: (float(latitude), float(longitude))
    for name, (latitude, longitude) in read_entries(Path(__file__).with_name("towns.txt"))
}
_PREPOSITION_PATTERN: Final = re.compile(
    r"(?<!\w)(?:in|at|around|near to|near|close to|closest to|nearest to|nearby|inside|for|na|"
    r"insay|insai|klos to|klos|nia|fɔ|à|a|au|en|dans|vers|près de|pres de|près d'|proche de|"
    r"autour de|du côté de)\s+",
    re.IGNORECASE,
)
_ARTICLE_PATTERN: Final = re.compile(
    r"^(?:(?:the|my|mi|le|la|les|l'|de|du|quartier|ville|town|city|district|area)\s+)+", re.I
)
_KIND_PATTERN: Final = re.compile(r"\s+(?:town|city|district|area|ville|tɔn)$", re.I)
_PLACE_PATTERN: Final = re.compile(r"[^\W_](?:[^\W_]|[ .,'/-])*")
#: Words for the person's own position, and words that do not name a place.
_GENERIC_WORDS: Final = frozenset(
    normalize_text(word)
    for word in """me mi us moi nous here ya yah ici there de my mon ma house os home area eria town
    tɔn place ples side sai location position where usay usai ou close near nia klos nearest agent
    agents ejɛnt ajent ajan cash money moni kash withdraw deposit i a want wan need find get point
    chez maison quartier ville proche plus pres is are the an any some this that now today please
    pls svp stp abeg go fɔ to for you una yu which us wich kin can could know tell me tɛl show no
    dis dat so all of what wetin in na at""".split()
)


def parse_place(text: str) -> str | None:
    """Return the place if the text is only a place, such as `"Bo, Kissy Road"`, or None."""
    place = _ARTICLE_PATTERN.sub("", normalize_digits(text).strip(" .!?"))
    place = _KIND_PATTERN.sub("", place)
    if len(place) > _MAX_LENGTH or not _PLACE_PATTERN.fullmatch(place):
        return None
    words = normalize_text(place).split()
    is_generic = all(word in _GENERIC_WORDS or word == "#" for word in words)
    return None if is_generic or len(words) > 4 else place


def parse_place_in_question(text: str) -> str | None:
    """Return the place in a question, such as `"Bo"` in `"Where is an agent in Bo?"`, or None."""
    parts = _PREPOSITION_PATTERN.split(normalize_digits(text).strip(" .!?"))[1:]
    places = [
        place
        for part in parts
        if (place := parse_place(re.sub(r"\s+(?:please|pls|svp|stp|abeg|ya|now)$", "", part)))
        and not set(normalize_text(place).split()) & _GENERIC_WORDS
    ]
    return places[-1] if places else None


def find_town(latitude: float, longitude: float) -> str | None:
    """Return the known town that is closest to a position, or None if all are far away."""
    distance, town = min(
        (_measure_km(latitude, longitude, position), name) for name, position in _TOWNS.items()
    )
    return town if distance <= _MAX_TOWN_DISTANCE_KM else None


def _measure_km(latitude: float, longitude: float, town: tuple[float, float]) -> float:
    """Return the distance on a plane, which is exact enough for the closest town."""
    width = math.cos(math.radians(latitude))
    return _KM_PER_DEGREE * math.hypot(latitude - town[0], (longitude - town[1]) * width)


def parse_address(address: str) -> str | None:
    """Return the town in an address such as `"12 Main Street, Kumasi, Ghana"`, or None."""
    parts = [part for part in normalize_digits(address).split(",") if part.strip()]
    return parse_place(parts[-2] if len(parts) > 1 else "".join(parts))
