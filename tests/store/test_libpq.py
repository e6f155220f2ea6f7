"""PostgreSQL's programs find the same database as the drivers, and no password is on view."""

import pytest

from tapgate.store import StoreError
from tapgate.store.libpq import address


@pytest.mark.parametrize(
    ("url", "shown", "password"),
    [
        ("postgresql://ada:s3cret@db/tapgate", "postgresql://ada@db/tapgate", "s3cret"),
        ("postgres://ada:p%40ss%3Aw%2Frd%25@db/x", "postgres://ada@db/x", "p@ss:w/rd%"),
        (
            "postgresql://ada@one:5433,two:5434/x?password=s3cret&target_session_attrs=any",
            "postgresql://ada@one:5433,two:5434/x?target_session_attrs=any",
            "s3cret",
        ),
        (
            "postgresql://a%40b@/x?host=/var/run/a b&sslmode=verify-full",
            "postgresql://a%40b@/x?host=%2Fvar%2Frun%2Fa%20b&sslmode=verify-full",
            None,
        ),
        ("postgresql://%2Fvar%2Frun/x", "postgresql://%2Fvar%2Frun/x", None),
        ("postgresql://db?database=x+y", "postgresql://db?dbname=x%20y", None),
        (
            "postgresql://db/x?search_path=a b&options=-c%20jit%3Doff",
            "postgresql://db/x?options=-c%20search_path%3Da%5C%20b%20-c%20jit%3Doff",
            None,
        ),
        ("postgresql:///x", "postgresql:///x", None),
    ],
)
def test_an_address_without_its_password(
    url: str, shown: str, password: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    monkeypatch.setenv("TAPGATE_SECRET_KEY", "s3cret")
    found = address(url)
    assert found.url == shown
    assert found.environ.get("PGPASSWORD") == password
    assert "TAPGATE_SECRET_KEY" not in found.environ


def test_a_secret_that_could_only_be_given_in_view_is_refused() -> None:
    with pytest.raises(StoreError, match="sslpassword") as refused:
        address("postgresql://ada@db/x?sslkey=/a.key&sslpassword=s3cret")
    assert "s3cret" not in str(refused.value)
