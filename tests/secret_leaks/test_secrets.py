"""PIN matching in the leak detector: a PIN is found only as a standalone number."""

from cases import each
from secret_leaks.secrets import SecretSet


def build_secret_set(secret: str) -> SecretSet:
    secrets = SecretSet()
    secrets.add("a secret", secret)
    return secrets


@each(
    "text",
    [
        "4071",
        "pin 4071.",
        '{"pin": "4071"}',
        "(1,4071,x)",
        "pin=4071&x",
        "my pin:4071",
        "x\n4071\n",
    ],
)
def test_standalone_pin_is_found(text: str) -> None:
    assert build_secret_set("4071").find_leaks("here", text.encode())


@each("text", ["14071", "40712", "txn_4071ab", "4071.00", "12:00:00.4071+00"])
def test_digits_within_ids_amounts_or_times_are_not_reported(text: str) -> None:
    assert not build_secret_set("4071").find_leaks("here", text.encode())
