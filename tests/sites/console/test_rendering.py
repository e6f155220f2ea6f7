"""Rendering: the work that each page causes, whatever its number of parts."""

from typing import Any

import pytest
from jinja2 import Template

from drivers.console import ConsoleClient
from harness import Harness


async def test_page_imports_each_template_once(
    ada: ConsoleClient, harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        await harness.create_subscriber(balance="10")
    imported: list[str | None] = []
    make_module = Template.make_module

    def record(template: Template, *arguments: Any) -> Any:
        imported.append(template.name)
        return make_module(template, *arguments)

    monkeypatch.setattr(Template, "make_module", record)
    for path in ("/console", "/console/transactions", "/console/subscribers", "/console/settings"):
        imported.clear()
        await ada.get_page_text(path)
        assert "macros.html" in imported
        assert len(imported) == len(set(imported)), f"{path} imports {imported}"
