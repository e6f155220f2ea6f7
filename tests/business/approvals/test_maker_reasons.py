"""The maker's reason of a request that waits for approval."""

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from builders.approvals import APPROVALS_URL, build_rule, require_held, set_rules
from harness import Harness, parse_error
from tapgate.http.api import approval_reason

_KEYSETS_URL = "/api/v1/cards/keysets"
_REASON = "Clés du bureau n° 2, 100 % signées"


async def request_keyset(harness: Harness, **headers: str) -> Any:
    maker = await harness.create_admin()
    return await harness.post(_KEYSETS_URL, json={"name": "Bureau"}, auth=maker, headers=headers)


async def test_approvers_and_the_audit_log_have_the_makers_reason(harness: Harness) -> None:
    await set_rules(harness, build_rule("keysets"))
    held = require_held(await request_keyset(harness, **{"Approval-Reason": quote(_REASON)}))
    read = await harness.get(f"{APPROVALS_URL}/{held['id']}", auth=await harness.create_admin("F"))
    assert held["reason"] == read.json()["reason"] == _REASON
    (entry,) = await harness.list_audit_entries(held["id"], "approval.created")
    assert entry["reason"] == _REASON


async def test_request_over_the_api_needs_no_reason(harness: Harness) -> None:
    await set_rules(harness, build_rule("keysets"))
    assert require_held(await request_keyset(harness))["reason"] is None


@pytest.mark.parametrize("value", ["%FF", quote("x" * 501), "%00"])
async def test_invalid_reason_holds_nothing(harness: Harness, value: str) -> None:
    await set_rules(harness, build_rule("keysets"))
    response = await request_keyset(harness, **{"Approval-Reason": value})
    assert parse_error(response) == (422, "VALIDATION_FAILED")
    assert list(response.json()["details"]["fields"]) == ["Approval-Reason"]
    pending = await harness.get(APPROVALS_URL, auth=await harness.create_admin())
    assert pending.json()["data"] == []


async def test_reason_is_hidden_with_the_values_of_a_restricted_customer(harness: Harness) -> None:
    customer = await harness.create_subscriber()
    await set_rules(harness, build_rule("subscriber_phone"))
    held = require_held(
        await harness.put(
            f"/api/v1/subscribers/{customer['id']}",
            json={"phone_number": "+23276123499"},
            auth=await harness.create_admin(),
            headers={"Approval-Reason": quote("Lost +23276000111")},
        )
    )
    assert held["reason"] == "Lost +23276000111"
    await harness.database.execute("UPDATE subscribers SET restricted = true")
    url = f"{APPROVALS_URL}/{held['id']}"
    masked = (await harness.get(url, auth=await harness.create_admin())).json()
    assert (masked["masked"], masked["reason"]) == (True, None)


@given(st.text(min_size=1, max_size=500))
@example("a\r\nX-Admin: 1")
def test_every_reason_fits_into_a_header(reason: str) -> None:
    try:
        reason.encode()
    except UnicodeEncodeError:
        return  # forms are decoded from UTF-8, which has no surrogates
    encoded = approval_reason.encode(reason)
    assert encoded.isascii()
    assert not set(encoded) & set(b"\r\n\0 ")
