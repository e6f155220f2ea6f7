"""Saved replies of support: list, create, edit and delete."""

from typing import Any, Final

from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.components.state_actions import build_state_action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import PageRequest
from tapgate.sites.console.site import Pages
from tapgate_client.schemas.subscribers import SubscriberLanguage

pages = Pages()

LIST_PATH: Final = "/api/v1/support/saved-replies"
_ITEM_PATH: Final = f"{LIST_PATH}/{{id}}"
_PAGE_PATH: Final = "/console/saved-replies"
_FIELDS: Final = (
    Field("label", hint="Shown on the button, for example: Lost card"),
    Field("texts.en", "English text", "long"),
    Field(
        "texts.fr",
        "French text",
        "long",
        hint="Without a French text, French-speaking customers get the English text.",
        required=False,
    ),
    Field("position", kind="number", hint="1 is the first. Blank: the last.", required=False),
)

ACTIONS: Final = (
    Action(
        name="saved_reply.create",
        endpoint=f"POST {LIST_PATH}",
        title="Create a saved reply",
        description="Everyone in support can insert the text into a reply and change it there.",
        fields=_FIELDS,
        success_message="Saved reply created.",
        redirect_path=_PAGE_PATH,
    ),
    Action(
        name="saved_reply.edit",
        endpoint=f"PUT {_ITEM_PATH}",
        title="Edit saved reply",
        button="Save",
        fields=(*_FIELDS[:3], _FIELDS[3]._replace(hint="1 is the first.", required=True)),
        prefill_path=_ITEM_PATH,
        success_message="Saved reply updated.",
        redirect_path=_PAGE_PATH,
    ),
    build_state_action(
        "saved_reply",
        _ITEM_PATH,
        "saved reply",
        "delete",
        "Replies that contain this text don't change. This can't be undone.",
        redirect_path=_PAGE_PATH,
        preview_path=_ITEM_PATH,
        preview_template="support/saved_reply.html",
    ),
)


@pages.get(_PAGE_PATH)
async def list_saved_replies(request: PageRequest) -> Reply[bytes]:
    replies = await request.get(LIST_PATH)
    page = {"data": replies["data"], "has_more": False}
    return request.render("support/saved_replies.html", page=page)


async def load_saved_replies(request: PageRequest, language: str | None) -> list[tuple[str, str]]:
    """Return the labels, and the texts in a language or else in English."""
    replies: dict[str, Any] = await request.get(LIST_PATH)
    return [
        (reply["label"], reply["texts"].get(language) or reply["texts"][SubscriberLanguage.EN])
        for reply in replies["data"]
    ]
