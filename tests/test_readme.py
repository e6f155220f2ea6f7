"""The README tour runs as printed; links between documents resolve."""

import asyncio
import os
import re
from functools import cache
from pathlib import Path

from drivers.processes import TAPGATE_EXECUTABLE, run_gateway_and_messenger
from tapgate.sites.guide.anchors import AnchorRegistry

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!http)([^)#]*)#?([^)]*)\)")
PLAIN_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


async def test_readme_tour_runs_as_printed(public_tmp_path: Path, database_url: str) -> None:
    tour = "\n".join(BLOCK.findall((ROOT / "README.md").read_text()))
    async with run_gateway_and_messenger(public_tmp_path, database_url) as (address, messenger):
        script = tour.replace("http://127.0.0.1:8000", address)
        script = script.replace(".venv/bin/tapgate", str(TAPGATE_EXECUTABLE))
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-eu",
            "-c",
            script.replace("curl -s", "curl -sS -w '\n%{http_code}\n'"),
            env=os.environ
            | {
                "TAPGATE_DATA_DIR": str(public_tmp_path / "gateway"),
                "TAPGATE_DATABASE_URL": database_url,
                "TAPGATE_MESSENGER_URL": messenger,
            },
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, error = await process.communicate()
    text = output.decode()
    assert (process.returncode, error.decode()) == (0, ""), text
    statuses = re.findall(r"^(\d{3})$", text, re.MULTILINE)
    # health, record, wrong PIN, changed PIN, limits, bad registration, service, one-time code
    assert statuses == ["200", "200", "400", "200", "200", "422", "200", "200"], text
    assert re.search(r"one_time_code: \d{6}$", text, re.MULTILINE)
    assert "0.00 SLE" in text
    assert "\npassed " in text
    assert "\nFAILED " not in text


@cache
def list_anchors(document: Path) -> set[str]:
    page, prose = AnchorRegistry(), FENCED.sub("", document.read_text())
    return {page.add(PLAIN_LINK.sub(r"\1", heading)) for heading in HEADING.findall(prose)}


def test_links_between_documents_resolve() -> None:
    documents = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    for document in documents:
        for target, anchor in LINK.findall(document.read_text()):
            linked = document.parent / target if target else document
            assert linked.exists(), (document.name, target)
            if anchor:
                anchors = list_anchors(linked)
                assert anchor in anchors, f"{document.name}: {target}#{anchor} is not a heading"
