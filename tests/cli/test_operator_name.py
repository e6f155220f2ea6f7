"""Operator name in the audit log when the process user has no name."""

import os

import pytest

from tapgate.cli import operator


def test_process_without_a_user_name_is_recorded_by_user_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 987_654_321)
    assert operator.build_actor().id == "command line:987654321"
