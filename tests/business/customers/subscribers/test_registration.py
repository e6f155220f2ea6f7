"""Subscriber registration, validation and the returned record."""

from typing import Any

from cases import each
from harness import PIN, Harness
from tapgate_client import ids

URL = "/api/v1/subscribers"
#: Optional fields of a registration, in the order of the record.
PROFILE = {
    "email": "aminata@example.com",
    "date_of_birth": "1990-01-31",
    "address": "12 Siaka Stevens Street, Freetown",
    "id_type": "NATIONAL_ID",
    "id_number": "SL-123456",
    "category": "vip",
    "language": "fr",
}


def build_registration(harness: Harness, **fields: Any) -> dict[str, Any]:
    return {
        "phone_number": harness.new_phone_number(),
        "first_name": "Aminata",
        "last_name": "Kamara",
        "pin": PIN,
        **fields,
    }


async def test_registration_returns_the_subscriber_record(harness: Harness) -> None:
    body = build_registration(harness, **PROFILE | {"email": "Aminata@Example.com"})
    response = await harness.post(
        URL, json=body, auth=await harness.create_api_key("subscribers:write")
    )
    assert response.status_code == 201
    registered = response.json()
    assert list(registered) == ["success", "message", "subscriber_id", "subscriber"]
    record = registered["subscriber"]
    assert registered["success"] is True
    assert record["id"].startswith("sub_")
    assert record["account_id"].startswith("acc_")
    expected = {
        "id": registered["subscriber_id"],
        "phone_number": body["phone_number"],
        "first_name": "Aminata",
        "last_name": "Kamara",
        **PROFILE,
        "messages": "all",
        "kyc_level": 1,
        "kyc_status": "NONE",
        "kyc_pending_since": None,
        "restricted": False,
        "status": "ACTIVE",
        "status_reason": None,
        "account_id": record["account_id"],
        "balance": "0.00",
        "currency": "SLE",
        "cards_count": 0,
        "max_child_cards": 10,
        "pin_locked_until": None,
        "created_at": record["created_at"],
        "updated_at": record["created_at"],
    }
    assert list(record.items()) == list(expected.items())


async def test_registration_opens_a_wallet_in_the_subscribers_name(harness: Harness) -> None:
    record = await harness.create_subscriber(first_name="Fatu", last_name="Sesay")
    row = await harness.database.fetchrow(
        "SELECT kind, holder_name, kyc_level FROM accounts WHERE owner_id IS NOT NULL"
    )
    assert row is not None
    assert dict(row) == {"kind": "wallet", "holder_name": "Fatu Sesay", "kyc_level": 1}
    assert await harness.list_audit_entries(record["id"], "subscriber.created") == [
        {
            "actor": {"type": "service", "id": "messenger", "name": "messenger"},
            "result": "success",
            "reason": None,
            "changes": {"status": [None, "ACTIVE"]},
        }
    ]


async def test_e164_numbers_of_any_length_are_accepted(harness: Harness) -> None:
    for phone in ("+232761234567", "+2327612345", "+123456789012345", "+1234567890"):
        assert (await harness.create_subscriber(phone_number=phone))["phone_number"] == phone


async def test_duplicate_phone_number_is_rejected(harness: Harness) -> None:
    record = await harness.create_subscriber()
    formatted = f"{record['phone_number'][:4]} {record['phone_number'][4:]}"
    response = await harness.post(
        URL,
        json=build_registration(harness, phone_number=formatted),
        auth=harness.get_service_auth(),
    )
    assert (response.status_code, response.json()["code"]) == (409, "DUPLICATE_PHONE")


async def test_duplicate_id_number_is_rejected(harness: Harness) -> None:
    await harness.create_subscriber(id_type="PASSPORT", id_number="P1")
    body = build_registration(harness, id_type="NATIONAL_ID", id_number="P1")
    response = await harness.post(URL, json=body, auth=harness.get_service_auth())
    assert (response.status_code, response.json()["code"]) == (409, "DUPLICATE_ID_NUMBER")


async def test_rejected_registration_creates_no_wallet(harness: Harness) -> None:
    record = await harness.create_subscriber()
    body = build_registration(harness, phone_number=record["phone_number"])
    await harness.post(URL, json=body, auth=harness.get_service_auth())
    wallets = await harness.database.fetchval("SELECT count(*) FROM accounts WHERE kind = 'wallet'")
    assert wallets == 1


async def test_missing_field_is_named(harness: Harness) -> None:
    for field in ("phone_number", "first_name", "last_name", "pin"):
        body = build_registration(harness)
        del body[field]
        response = await harness.post(URL, json=body, auth=harness.get_service_auth())
        assert (response.status_code, response.json()["code"]) == (400, "INVALID_REQUEST")
        assert list(response.json()["details"]["fields"]) == [field]


@each(
    "field, values",
    [
        ("phone_number", ["076123456", "+999999999999999", "+232", "+23276123456x"]),
        ("first_name", ["", "   ", "Ami\0nata", "A" * 10_000]),
        ("pin", ["12345", "12a4", "١٢٣٤", "4" * 10_000]),
        ("email", ["nobody", "a@b", "a b@example.com", "a@example.com\0"]),
        (
            "date_of_birth",
            ["1990-02-30", "31.01.1990", "1899-12-31", "2999-01-01", "19900131", "1990-01-31\0"],
        ),
        ("address", ["A" * 256]),
        ("id_type", ["LIBRARY_CARD", "passport"]),
        ("category", ["gold", ""]),
    ],
)
async def test_invalid_field_is_named_without_echoing_its_value(
    harness: Harness, field: str, values: list[str]
) -> None:
    for value in values:
        body = build_registration(harness, **{field: value})
        response = await harness.post(URL, json=body, auth=harness.get_service_auth())
        assert (response.status_code, response.json()["code"]) == (422, "VALIDATION_FAILED"), value
        message = response.json()["details"]["fields"].pop(field)
        assert not value.strip() or value not in message
        assert response.json()["message"] == f"{field} {message}"


async def test_weak_pin_is_rejected(harness: Harness) -> None:
    body = build_registration(harness, pin="1234")
    response = await harness.post(URL, json=body, auth=harness.get_service_auth())
    assert response.status_code == 422
    assert list(response.json()["details"]["fields"]) == ["pin"]
    body["pin"] = PIN
    response = await harness.post(URL, json=body, auth=harness.get_service_auth())
    assert response.status_code == 201


async def test_public_name_shows_only_the_initial_of_the_last_name(harness: Harness) -> None:
    for first, last, public_name in (
        ("Aminata", " Kamara ", "Aminata K."),
        ("Mary Ann", "Koroma Kamara", "Mary Ann K."),
    ):
        record = await harness.create_subscriber(first_name=first, last_name=last)
        assert record["last_name"] == last.strip()
        assert await get_public_name(harness, record) == public_name
    response = await harness.put(
        f"{URL}/{record['id']}", json={"last_name": "Sesay"}, auth=await harness.create_admin()
    )
    assert response.status_code == 200
    assert await get_public_name(harness, record) == "Mary Ann S."


async def get_public_name(harness: Harness, record: dict[str, Any]) -> str:
    account_id = ids.decode(ids.ACCOUNT, record["account_id"])
    public_name: str = await harness.database.fetchval(
        "SELECT public_name FROM accounts WHERE id = $1", account_id
    )
    return public_name
