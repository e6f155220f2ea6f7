"""docs/errors.md explains every error code with its status and text."""

import re
from pathlib import Path

from cases import each
from tapgate_client.errors import TABLE, Code

DOCUMENT = Path(__file__).parents[2] / "docs" / "errors.md"
TEXT = DOCUMENT.read_text()

ROW = re.compile(r"^\| \[`([A-Z_]+)`\]\(#([a-z_]+)\) \| (\d+) \| (.+) \|$", re.MULTILINE)
SECTION = re.compile(r"^### ([A-Z_]+)\n\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
FIRST_LINE = re.compile(
    r"\*\*(\d{3})\*\* · `request_id`: "
    r"((consumed|reusable|not applicable|belongs to the first request)\b.*)"
)

ROWS = {code: (anchor, int(status), text) for code, anchor, status, text in ROW.findall(TEXT)}
SECTIONS = dict(SECTION.findall(TEXT))

ADD_HINT = (
    'Add to docs/errors.md: a row in "All codes", and, in the group of the code, a section'
    " `### CODE` with a first line"
    " `**STATUS** · `request_id`: consumed|reusable|not applicable`, when it happens,"
    " `*Details:*` if it has any, and `*What to do:*`."
)


def test_every_code_has_a_row_and_a_section() -> None:
    missing = [code for code in TABLE if code not in ROWS or code not in SECTIONS]
    assert not missing, f"not explained: {', '.join(missing)}. {ADD_HINT}"


def test_no_unknown_code_is_documented() -> None:
    unknown = (ROWS.keys() | SECTIONS.keys()) - set(TABLE)
    assert not unknown, f"no such code in errors.TABLE: {', '.join(unknown)}. Remove it."
    named = set(re.findall(r"`([A-Z]+_[A-Z_]+)`", TEXT))
    setting_names = {name for name in named if name.startswith("TAPGATE_")}
    assert named - setting_names <= set(TABLE), "the text names a code that does not exist"


@each("code", TABLE)
def test_status_and_text_match_the_table(code: Code) -> None:
    status, text = TABLE[code]
    assert ROWS.get(code) == (code.lower(), status, text), ADD_HINT
    first, *rest = SECTIONS.get(code, "").strip().split("\n\n")
    match = FIRST_LINE.fullmatch(first)
    assert match is not None, f"the first line of {code} has an unexpected format. {ADD_HINT}"
    assert int(match[1]) == status
    assert rest, f"{code}: explain when it occurs. {ADD_HINT}"
    found = rest[-1].startswith("*What to do:* ")
    assert found, f"{code}: explain what a client should do. {ADD_HINT}"
