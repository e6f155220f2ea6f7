"""Lists of secret keys in `TAPGATE_SECRET_KEY`."""

import pytest

from cases import each
from tapgate.core.secret_keys import parse_secret_keys


@each(
    "text, keys",
    [
        ("secret", [("0", "secret")]),
        ("with, comma", [("0", "with, comma")]),
        ("one:two", [("one", "two")]),
        ("1:new,old", [("1", "new"), ("0", "old")]),
        ("b:new,a:old:colon", [("b", "new"), ("a", "old:colon")]),
        ("an ID with spaces: secret", [("0", "an ID with spaces: secret")]),
    ],
)
def test_keys_are_listed_newest_first(text: str, keys: list[tuple[str, str]]) -> None:
    assert parse_secret_keys(text) == keys


@each(
    "text, error",
    [
        ("1:new,1:old", "two keys with the same ID"),
        ("new,old,1:older", "two keys with the same ID"),
        ("1:key,2:key", "a key twice"),
        ("1:key,", "an empty key"),
        (",".join(f"{number}:key{number}" for number in range(9)), "at most 8 keys"),
    ],
)
def test_invalid_list_is_rejected_without_showing_a_key(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error) as caught:
        parse_secret_keys(text)
    assert "old" not in str(caught.value)


def test_representation_does_not_show_the_key() -> None:
    assert "secret" not in repr(parse_secret_keys("1:secret"))
