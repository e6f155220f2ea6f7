"""What docs/proof.md calls a test is one."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
NAMED = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
FIELD = "tests/field/"
SECURITY = (
    "test_signatures test_tokens test_guessing test_mass_assignment test_other_tenants "
    "test_smuggling test_exports test_outgoing_requests test_bombs"
)


def test_every_test_that_is_named_is_there() -> None:
    named = NAMED.findall((ROOT / "docs/proof.md").read_text())
    assert len(named) > 50
    for file, name in named:
        assert re.search(rf"def {name}\(", (ROOT / file).read_text()), f"{file}::{name}"


def test_every_file_of_the_security_half_is_named() -> None:
    named = {file for file, _ in NAMED.findall((ROOT / "docs/proof.md").read_text())}
    assert {f"{FIELD}{name}.py" for name in SECURITY.split()} <= named
