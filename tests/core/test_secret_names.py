"""Names that denote secrets."""

from cases import each
from tapgate.core.secret_names import is_secret_name


@each(
    "name",
    ["pin", "old_pin", "PINS", "password_hash", "api_key", "api_keys", "X-Signature", "otp"],
)
def test_name_of_a_secret(name: str) -> None:
    assert is_secret_name(name)


@each("name", ["key_id", "key_prefix", "pin_locked_until", "no_pin_limit", "rotated_at", "pink"])
def test_name_that_only_refers_to_a_secret_or_to_none(name: str) -> None:
    assert not is_secret_name(name)
