"""GL codes: defaults, changes, and use in reports."""

import asyncio
from typing import Any

import httpx2

from cases import each
from harness import Harness
from tapgate_client.schemas.general_ledger import AccountKind

URL = "/api/v1/ledger/gl-codes"

DEFAULT_CODES = {
    "cash": ("1000", "Cash and bank"),
    "wallet": ("2100", "Customer wallets"),
    "float": ("2200", "Agent float"),
    "commission": ("2300", "Agent commission payable"),
    "settlement": ("2400", "Merchant settlement"),
    "clearing": ("2500", "Partner clearing"),
    "payouts_in_transit": ("2600", "Payouts in transit"),
    "suspense": ("2900", "Suspense"),
    "fees": ("4000", "Fee income"),
    "commission_expense": ("5000", "Agent commission expense"),
}


async def put_codes(harness: Harness, *codes: dict[str, Any]) -> httpx2.Response:
    return await harness.client.put(URL, json={"data": codes}, auth=await harness.create_admin("F"))


async def get_codes(harness: Harness) -> dict[str, tuple[str, str]]:
    response = await harness.client.get(URL, auth=await harness.create_admin("F"))
    assert response.status_code == 200, response.text
    return {row["kind"]: (row["gl_code"], row["name"]) for row in response.json()["data"]}


async def list_changes(harness: Harness) -> list[Any]:
    rows = await harness.services.database.fetch(
        "SELECT changes FROM audit_entries WHERE event = 'gl_codes.updated' ORDER BY id"
    )
    return [row["changes"] for row in rows]


async def test_every_account_kind_has_a_default_code(harness: Harness) -> None:
    assert await get_codes(harness) == DEFAULT_CODES
    assert set(DEFAULT_CODES) == set(AccountKind)
    defaults = [
        {"kind": kind, "gl_code": code, "name": name}
        for kind, (code, name) in DEFAULT_CODES.items()
    ]
    response = await put_codes(harness, *defaults)
    assert (response.status_code, response.json()) == (200, {"data": defaults})
    assert await list_changes(harness) == []


async def test_changed_codes_are_audited_and_used_in_reports(harness: Harness) -> None:
    response = await put_codes(
        harness,
        {"kind": "wallet", "gl_code": "L-10.5", "name": "E-money in issue"},
        {"kind": "fees", "gl_code": "5000"},
        {"kind": "commission_expense", "gl_code": "4000"},
    )
    assert response.status_code == 200, response.text
    changed = {
        "wallet": ("L-10.5", "E-money in issue"),
        "fees": ("5000", "Fee income"),
        "commission_expense": ("4000", "Agent commission expense"),
    }
    assert await get_codes(harness) == DEFAULT_CODES | changed
    (changes,) = await list_changes(harness)
    expected = {
        kind: [
            dict(zip(("gl_code", "name"), codes, strict=True))
            for codes in (DEFAULT_CODES[kind], changed[kind])
        ]
        for kind in changed
    }
    assert changes == expected
    for path in ("accounts", "trial-balance"):
        report = await harness.client.get(
            f"/api/v1/ledger/{path}", auth=await harness.create_admin("F")
        )
        body = report.json()
        codes = {row["gl_code"]: row["name"] for row in body.get("data") or body["rows"]}
        assert codes == dict((DEFAULT_CODES | changed).values())


async def test_concurrent_changes_cannot_share_a_code(harness: Harness) -> None:
    responses = await asyncio.gather(
        *(put_codes(harness, {"kind": kind, "gl_code": "9999"}) for kind in DEFAULT_CODES)
    )
    codes = sorted(response.status_code for response in responses)
    assert codes == [200] + [422] * (len(DEFAULT_CODES) - 1)


INVALID_CODES: list[tuple[list[Any], int, str]] = [
    ([], 422, "data"),
    ([{"kind": "wallet", "gl_code": ""}], 422, "data[0].gl_code"),
    ([{"kind": "wallet", "gl_code": "-1"}], 422, "data[0].gl_code"),
    ([{"kind": "wallet", "gl_code": "21 00"}], 422, "data[0].gl_code"),
    ([{"kind": "wallet", "gl_code": "2100\n"}], 422, "data[0].gl_code"),
    ([{"kind": "wallet", "gl_code": "٢١٠٠"}], 422, "data[0].gl_code"),
    ([{"kind": "wallet", "gl_code": "2" * 21}], 422, "data[0].gl_code"),
    ([{"kind": "wallet", "gl_code": 2100}], 400, "data[0].gl_code"),
    ([{"kind": "wallet"}], 400, "data[0].gl_code"),
    ([{"kind": "savings", "gl_code": "2100"}], 422, "data[0].kind"),
    ([{"kind": "wallet", "gl_code": "2100", "name": "a\nb"}], 422, "data[0].name"),
    ([{"kind": "wallet", "gl_code": "2100", "name": ""}], 422, "data[0].name"),
    ([{"kind": "wallet", "gl_code": "2100", "name": "x" * 101}], 422, "data[0].name"),
    ([{"kind": "wallet", "gl_code": "4000"}], 422, "data[0].gl_code"),
    ([{"kind": "wallet", "gl_code": "1"}, {"kind": "wallet", "gl_code": "2"}], 422, "data[1].kind"),
    ([{"kind": "wallet", "gl_code": "A.1"}, {"kind": "fees", "gl_code": "A-1"}], 422,
     "data[0].gl_code"),
    ([{"kind": "wallet", "gl_code": "2100"}] * (len(AccountKind) + 1), 422, "data"),
]  # fmt: skip


@each("codes, status, field", INVALID_CODES)
async def test_invalid_code_is_rejected_with_its_field(
    harness: Harness, codes: list[Any], status: int, field: str
) -> None:
    response = await put_codes(harness, *codes)
    assert response.status_code == status, response.text
    assert next(iter(response.json()["details"]["fields"])) == field
    assert await get_codes(harness) == DEFAULT_CODES
