"""Card personalization sheet: the keys and settings that an encoder writes to its chip."""

from typing import Any, Final

from tapgate.business.customers.cards.uids import is_signing_uid
from tapgate.http.endpoint import Reply
from tapgate.sites.console import step_up
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.related import gather_by_name
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.pages.keysets import LIST_PATH as KEYSETS_PATH
from tapgate.sites.console.site import Pages
from tapgate_client.errors import ApiError, Code
from tapgate_client.schemas.card_proofs import KeysetStatus

pages = Pages()

_ITEM_PATH: Final = "/api/v1/cards/{serial}"
_PERSONALIZE_PATH: Final = f"{_ITEM_PATH}/personalize"
_MAX_KEYSETS: Final = 100

#: ChangeFileSettings command data for the NDEF file, before the offsets: SDM in plain communication
#: mode, reading for everyone and writing with key 0, UID and counter in ASCII, and the keys of SDM
#: (counter 1, meta read 2, file read 1).
_FILE_SETTINGS: Final = bytes.fromhex("4000E0C1F121")
_OFFSET_BYTES: Final = 3

ACTIONS = (
    Action(
        name="card.confirm",
        endpoint=f"POST {_PERSONALIZE_PATH}/confirm",
        title="Confirm the keys",
        description="Tap the encoded card with a phone or a reader and paste the link that it "
        "shows. From then on, the card pays only with signed taps.",
        button="Confirm",
        fields=(
            Field(
                "card_proof.url",
                "Link of the tap",
                "long",
                hint="It contains picc_data and cmac. Each tap has a new link.",
            ),
        ),
        success_message="Keys confirmed. The card now signs its taps.",
        redirect_path="/console/cards/{serial}",
    ),
)


@pages.get("/console/cards/{serial}/personalize")
async def show_personalization(request: PageRequest, serial: str) -> Reply[bytes]:
    await request.require_access(f"POST {_PERSONALIZE_PATH}")
    parts = await gather_by_name(
        card=request.get(_ITEM_PATH, serial=serial),
        keysets=request.get(KEYSETS_PATH, {"limit": _MAX_KEYSETS}),
    )
    keysets = parts["keysets"]["data"]
    return request.render(
        "cards/personalize.html",
        card=parts["card"],
        keysets=[keyset for keyset in keysets if keyset["status"] == KeysetStatus.ACTIVE],
        can_sign=is_signing_uid(parts["card"]["mac_address"] or ""),
    )


@pages.post("/console/cards/{serial}/personalize")
async def issue_keys(request: PageRequest, serial: str) -> Reply[bytes]:
    """Issue a card's keys. Only this response contains them."""
    keyset_id = request.form.get("keyset_id") or ""
    try:
        issued = await request.send(
            "POST", _PERSONALIZE_PATH, {"keyset_id": keyset_id}, serial=serial
        )
    except ApiError as error:
        if error.code is Code.FORBIDDEN or step_up.is_answered_by_prompt(error):
            raise
        return request.render("cards/sheet_error.html", error=error)
    keysets = await request.get(KEYSETS_PATH, {"limit": _MAX_KEYSETS})
    return request.render(
        "cards/sheet.html",
        serial=serial,
        issued=issued,
        keyset=next(item for item in keysets["data"] if item["id"] == keyset_id),
        file_settings=_build_file_settings(issued["sdm"]),
    )


def _build_file_settings(offsets: dict[str, Any]) -> str:
    """Return the ChangeFileSettings data for the NDEF file, in hex."""
    names = ("picc_data_offset", "mac_input_offset", "mac_offset")
    encoded = (offsets[name].to_bytes(_OFFSET_BYTES, "little") for name in names)
    return b"".join((_FILE_SETTINGS, *encoded)).hex().upper()
