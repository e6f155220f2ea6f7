"""Random and mutated statement files: every one is read or refused, and never with an error."""

from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from builders.bank_statements import build_camt, build_camt_entry, build_mt940
from tapgate.business.finance.reconciliation.parsers.files import find_format, parse_file
from tapgate.business.finance.reconciliation.parsers.parsed import (
    MAX_DESCRIPTION_LENGTH,
    MAX_REFERENCE_LENGTH,
)
from tapgate_client.errors import ApiError
from tapgate_client.schemas.bank_statements import BankStatementFormat, CsvMapping

SAMPLES = [path.read_bytes() for path in sorted((Path(__file__).parent / "samples").iterdir())]
COLUMNS = CsvMapping(date="Tag", debit="Soll", credit="Haben", description=["a", "b"])
BOMB = b'<!DOCTYPE d [<!ENTITY a "%s">%s]><d>&z;</d>' % (b"x" * 99, b'<!ENTITY b "&a;&a;">' * 50)


def require_bounded(content: bytes, file_format: BankStatementFormat | None = None) -> None:
    """Require a statement within its limits, or an error for the client."""
    try:
        statement = parse_file(content, file_format or find_format(content), "EUR", COLUMNS)
    except ApiError as error:
        assert error.status == 422
        return
    assert statement.from_day <= statement.to_day
    for line in statement.lines:
        assert line.amount != 0
        assert abs(line.amount) < 10**14
        assert len(line.reference or "") <= MAX_REFERENCE_LENGTH
        assert len(line.description or "") <= MAX_DESCRIPTION_LENGTH
        assert "\0" not in f"{line.reference}{line.description}"
        f"{line.reference}{line.description}".encode()


@given(st.binary(max_size=400), st.sampled_from([None, *BankStatementFormat]))
@example(BOMB, None)
@example(b"<?xml version='1.0' encoding='utf-7'?><a/>", None)
@example(b"\xff\xfe<\x00a\x00/\x00>\x00", None)
@example(b'"' * 5_000, None)
@example(b":61:" * 5_000, BankStatementFormat.MT940)
def test_random_bytes_are_refused(content: bytes, file_format: BankStatementFormat | None) -> None:
    require_bounded(content, file_format)


@given(
    st.sampled_from(SAMPLES),
    st.lists(st.tuples(st.integers(0, 5_000), st.binary(max_size=12)), min_size=1, max_size=6),
)
def test_mutated_files_are_read_or_refused(sample: bytes, changes: list[tuple[int, bytes]]) -> None:
    content = bytearray(sample)
    for position, data in changes:
        start = position % len(content)
        content[start : start + len(data)] = data
    require_bounded(bytes(content))


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_text_in_a_field_is_read_or_refused(first: str, second: str) -> None:
    escaped = [text.encode("utf-8", "replace").decode() for text in (first, second)]
    for content in (
        build_camt(build_camt_entry(escaped[0], "2026-01-15", escaped[1], currency="EUR")),
        build_mt940([f":61:{escaped[0]}", f":86:{escaped[1]}"]).replace("SLE", "EUR"),
        f"Tag,Soll,Haben,a\n2026-01-15,{escaped[0]},1,{escaped[1]}\n",
    ):
        require_bounded(content.encode())


def test_large_hostile_files_are_bounded() -> None:
    size = 4 * 1024 * 1024
    head = build_camt("", currency="EUR").partition("</Stmt>")[0].encode()
    for content in (
        head + b"<a>" * (size // 3),
        head + b"<Ntry/>" * (size // 7),
        head + b"<Ntry><Sts>BOOK</Sts>" + b"<TxDtls/>" * (size // 9),
        head + b"<Ntry><AddtlNtryInf>" + b"x" * size,
        b":20:A\n" * (size // 6),
        b":20:A\n:25:1\n:60F:C260101EUR1,\n:61:" + b"1" * size,
        b":20:A\n:25:1\n:60F:C260101EUR1,\n" + b":61:260101C1,NTRF\n" * (size // 18),
        b"date,amount\n" + b'"' * size,
        b"date,amount\n" + b"\n" * size,
        b"," * size,
    ):
        require_bounded(content)
