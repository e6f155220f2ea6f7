"""Who gives commands is named in the audit log, also where nobody has a name."""

import os

import pytest

from tapgate.cli import operator


def test_a_process_of_no_user_goes_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 987_654_321)
    assert operator.build_origin().actor_id == "command line:987654321"
