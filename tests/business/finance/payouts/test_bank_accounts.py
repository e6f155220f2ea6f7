"""Bank accounts: owners, verification by a second admin, blocking and numbers."""

from builders.approvals import set_email
from builders.participants import create_agent
from builders.payouts import BANK_ACCOUNTS_URL, build_bank_account, create_bank_account
from cases import each
from harness import Harness
from tapgate_client import ids


async def test_number_is_complete_only_in_the_record_of_one_account(harness: Harness) -> None:
    agent = await create_agent(harness)
    account = await create_bank_account(
        harness, agent["id"], verified=False, number="gb33 BUKB 2020 1555 5555 55"
    )
    assert (account["number"], account["status"]) == ("GB33BUKB20201555555555", "unverified")
    assert (account["owner_type"], account["owner_id"]) == ("agent", agent["id"])
    auth = await harness.create_admin("F")
    response = await harness.get(f"{BANK_ACCOUNTS_URL}?owner_id={agent['id']}", auth=auth)
    (listed,) = response.json()["data"]
    assert (listed["id"], listed["number"]) == (account["id"], "5555")
    assert (await harness.get(f"{BANK_ACCOUNTS_URL}/{account['id']}", auth=auth)).json() == account
    audit = await harness.get("/api/v1/audit/logs", auth=await harness.create_admin("C"))
    assert "GB33BUKB20201555555555" not in audit.text


async def test_another_admin_must_verify_the_account(harness: Harness) -> None:
    maker, checker = await harness.create_admin("F"), await harness.create_admin("F")
    body = build_bank_account(None)
    account = (await harness.post(BANK_ACCOUNTS_URL, json=body, auth=maker)).json()
    url = f"{BANK_ACCOUNTS_URL}/{account['id']}/verify"
    response = await harness.post(url, auth=maker)
    assert (response.status_code, response.json()["code"]) == (403, "FORBIDDEN")
    verified = (await harness.post(url, auth=checker)).json()
    assert (verified["status"], verified["verified_by"]) == ("verified", checker.id)
    assert (await harness.post(url, auth=await harness.create_admin("A"))).json() == verified


async def test_second_account_of_the_same_person_cannot_verify(harness: Harness) -> None:
    """Another email address of the person, or an account whose link the person has had."""
    maker, checker = await harness.create_admin("A"), await harness.create_admin("F")
    second = await harness.create_admin("F")
    await set_email(harness, maker, "ada@example.com")
    await set_email(harness, second, "Ada+2@example.com")
    body = build_bank_account(None)
    account = (await harness.post(BANK_ACCOUNTS_URL, json=body, auth=maker)).json()
    url = f"{BANK_ACCOUNTS_URL}/{account['id']}/verify"
    await harness.database.execute(
        "INSERT INTO admin_link_views (admin_id, viewer_id, seen_at) VALUES ($1, $2, now())",
        ids.decode(ids.ADMIN, checker.id),
        ids.decode(ids.ADMIN, maker.id),
    )
    for auth in (second, checker):
        response = await harness.post(url, auth=auth)
        assert (response.status_code, response.json()["code"]) == (403, "FORBIDDEN")
    await harness.database.execute("UPDATE admin_link_views SET confirmed_at = now()")
    assert (await harness.post(url, auth=checker)).json()["status"] == "verified"


async def test_blocked_account_stays_blocked_and_frees_its_number(harness: Harness) -> None:
    body = build_bank_account(None)
    auth = await harness.create_admin("F")
    account = (await harness.post(BANK_ACCOUNTS_URL, json=body, auth=auth)).json()
    response = await harness.post(BANK_ACCOUNTS_URL, json=body, auth=auth)
    assert (response.status_code, response.json()["code"]) == (409, "DUPLICATE_REFERENCE")
    url = f"{BANK_ACCOUNTS_URL}/{account['id']}"
    blocked = await harness.post(f"{url}/block", json={"reason": "closed"}, auth=auth)
    assert (blocked.json()["status"], blocked.json()["block_reason"]) == ("blocked", "closed")
    for verb, fields in (("block", {"reason": "again"}), ("verify", None)):
        response = await harness.post(
            f"{url}/{verb}", json=fields, auth=await harness.create_admin("A")
        )
        assert (response.status_code, response.json()["code"]) == (409, "ALREADY_BLOCKED")
    assert (await harness.post(BANK_ACCOUNTS_URL, json=body, auth=auth)).status_code == 201


@each(
    "fields, status, field",
    [
        ({"owner_type": None}, 422, "owner_id"),
        ({"owner_id": "sub_0000000000000"}, 422, "owner_id"),
        ({"owner_id": "prc_0000000000000", "owner_type": "agent"}, 422, "owner_type"),
        ({"owner_id": "prc_0000000000000", "owner_type": None}, 404, None),
        ({"number": "12"}, 422, "number"),
        ({"bank_code": "A B!"}, 422, "bank_code"),
        ({"holder_name": "x" * 71}, 422, "holder_name"),
    ],
)
async def test_invalid_account_is_refused(
    harness: Harness, fields: dict[str, str], status: int, field: str | None
) -> None:
    response = await harness.post(
        BANK_ACCOUNTS_URL,
        json=build_bank_account(None, **fields),
        auth=await harness.create_admin("F"),
    )
    assert response.status_code == status, response.text
    if field is not None:
        assert list(response.json()["details"]["fields"]) == [field]
