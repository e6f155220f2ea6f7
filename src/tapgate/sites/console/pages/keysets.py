"""Keysets for cards that sign their taps: list, create, rotate and retire."""

from functools import partial
from typing import Final

from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.lists import add_list_page
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.site import Pages

pages = Pages()

LIST_PATH: Final = "/api/v1/cards/keysets"

_IMPORTED_KEY_HINT: Final = "32 hex digits. Leave blank to generate the key."
_IMPORTED_KEYS: Final = (
    Field("meta_read_key", kind="secret", hint=_IMPORTED_KEY_HINT, required=False),
    Field("file_read_key", kind="secret", hint=_IMPORTED_KEY_HINT, required=False),
)

_build_keyset_action = partial(
    Action, endpoint=f"POST {LIST_PATH}", redirect_path="/console/keysets"
)

ACTIONS = (
    _build_keyset_action(
        name="keyset.create",
        title="Create a keyset",
        description="The issuer keys of cards that sign their taps. To use the keys of a card "
        "bureau, enter them here. Stored keys are never shown.",
        fields=(Field("name", hint="For example, City cards"), *_IMPORTED_KEYS),
        success_message="Keyset created.",
    ),
    _build_keyset_action(
        name="keyset.rotate",
        title="Rotate keyset",
        description="Creates the next version with new keys. Cards keep their present keys until "
        "you personalize them again. Then retire the old version.",
        button="Create next version",
        fields=(Field("name", kind="hidden"), *_IMPORTED_KEYS),
        success_message="Next version created. Personalize the cards again to use it.",
    ),
    Action(
        name="keyset.retire",
        endpoint=f"POST {LIST_PATH}/{{id}}/retire",
        title="Retire this keyset?",
        button="Retire",
        description="Cards with these keys can't pay until you personalize them again. This can't "
        "be undone.",
        fields=(Field("cards", "Number of cards", "number", hint="Type the number to confirm."),),
        success_message="Keyset retired.",
        is_dangerous=True,
        redirect_path="/console/keysets",
        preview_path=f"{LIST_PATH}/{{id}}",
        preview_template="cards/keyset_retirement.html",
    ),
)

add_list_page(pages, "/console/keysets", LIST_PATH, "cards/keysets.html")
