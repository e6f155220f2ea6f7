"""Branding and effective settings."""

from collections.abc import Sequence
from typing import Any, Final

from tapgate.business.branding.model import render_stylesheet
from tapgate.core.settings import Settings
from tapgate.http.endpoint import Reply
from tapgate.sites.console.actions import Action
from tapgate.sites.console.form_fields import Field
from tapgate.sites.console.page_request import SECURITY_HEADERS, PageRequest
from tapgate.sites.console.site import Pages

pages = Pages()

_BRANDING: Final = "/api/v1/admin/branding"

ACTIONS = (
    Action(
        name="branding.update",
        endpoint=f"PUT {_BRANDING}",
        title="Edit branding",
        description="Shown in the console, on the page of a tapped card and in PDF statements.",
        button="Save",
        prefill_path=_BRANDING,
        preview_path=_BRANDING,
        preview_template="settings/preview_dialog.html",
        fields=(
            Field("name", "Operator name"),
            Field("color", kind="color", hint="Dark enough for white text on it"),
            Field(
                "support_contact",
                hint="Phone number, email or URL",
                required=False,
                resets=True,
            ),
            Field(
                "statement_header",
                kind="long",
                hint="Up to 3 lines, such as your address, for PDF statements",
                required=False,
                resets=True,
            ),
        ),
        success_message="Branding saved.",
    ),
    Action(
        name="branding.logo",
        endpoint=f"PUT {_BRANDING}",
        title="Upload a logo",
        button="Upload",
        preview_path=_BRANDING,
        preview_template="settings/preview_dialog.html",
        fields=(Field("logo", kind="picture", hint="PNG, at most 1024 pixels and 300 KB"),),
        success_message="Logo saved.",
    ),
    Action(
        name="branding.remove_logo",
        endpoint=f"PUT {_BRANDING}",
        title="Remove the logo?",
        description="Pages and new statements show the name only. You can upload a logo again.",
        button="Remove logo",
        fields=(Field("logo", kind="hidden", value="", required=False, resets=True),),
        success_message="Logo removed.",
        is_dangerous=True,
    ),
)


@pages.get("/console/settings")
async def show_settings(request: PageRequest) -> Reply[bytes]:
    settings = await request.get("/api/v1/system/settings")
    groups = group_settings(settings["data"])
    text = request.query.get("q") or ""
    tab = "configuration" if text or request.query.get("tab") == "configuration" else "branding"
    found = {
        title: [row for row in rows if _matches(request, row, text)]
        for title, rows in groups.items()
    }
    return request.render(
        "settings/settings.html",
        groups={title: rows for title, rows in found.items() if rows},
        changed=[row for rows in groups.values() for row in rows if _is_changed(row[1])],
        text=text,
        tab=tab,
    )


def _matches(request: PageRequest, row: tuple[str, Any], text: str) -> bool:
    label, record = row
    name = f"{request.translate(label)} {record['name']}".lower()
    return all(word in name for word in text.lower().split())


def _is_changed(record: dict[str, Any]) -> bool:
    """Return whether the operator set a value that is not the default. Secrets are not compared."""
    return bool(record["is_set"] and not record["is_default"] and not record["hidden"])


def group_settings(
    records: Sequence[Any], settings_type: type[Settings] = Settings
) -> dict[str, list[tuple[str, Any]]]:
    """Return the labels and the settings as the API returns them, by the title of their group."""
    by_name = {record["name"]: record for record in records}
    groups: dict[str, list[tuple[str, Any]]] = {}
    for item in settings_type.declared.values():
        groups.setdefault(item.group, []).append((item.label, by_name[item.variable]))
    return groups


@pages.get("/console/brand.css", public=True)
async def serve_stylesheet(request: PageRequest) -> Reply[bytes]:
    return Reply(
        render_stylesheet(request.branding["color"]).encode(),
        headers={**SECURITY_HEADERS, "Cache-Control": "no-cache"},
        content_type="text/css; charset=utf-8",
    )


@pages.get("/console/logo.png", public=True)
async def serve_logo(request: PageRequest) -> Reply[bytes]:
    return await request.get_file(f"{_BRANDING}/logo")
