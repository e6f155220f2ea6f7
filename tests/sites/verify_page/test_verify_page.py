"""The page /verify: its keys and headers, and its script on valid and changed proofs."""

import copy
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from builders.day_proofs import build_day_proof
from harness import Harness
from tapgate.auth.actors import Actor
from tapgate.business.finance.day_close.ledger_keys import rotate_key
from tapgate.sites.verify_page.texts import TEXTS

SCRIPT = Path(__file__).parents[3] / "src/tapgate/sites/verify_page/assets/verify.js"
NODE = shutil.which("node")


async def test_page_contains_the_keys_and_allows_no_connection(harness: Harness) -> None:
    async with harness.services.transaction() as tx:
        key_id = await rotate_key(
            tx, harness.services.vault, Actor(record={"type": "system", "id": "test"})
        )
    response = await harness.get("/verify")
    assert response.status_code == 200
    assert key_id in response.text
    assert "connect-src 'none'" in response.headers["Content-Security-Policy"]
    assert "form-action 'none'" in response.headers["Content-Security-Policy"]
    french = await harness.get("/verify", headers={"Accept-Language": "fr"})
    assert "Vérifier un reçu" in french.text
    for name in ("verify.js", "verify.css"):
        assert (await harness.get(f"/verify/assets/{name}")).status_code == 200
    assert (await harness.get("/verify/other")).status_code == 404
    assert (await harness.post("/verify")).status_code == 405


def test_both_languages_have_the_same_texts() -> None:
    assert TEXTS["en"].keys() == TEXTS["fr"].keys()


def run_script(proof: Any, keys: Any) -> str:
    """Return the transaction ID that the script accepts, or the reason why it refuses."""
    program = f"""
        {SCRIPT.read_text()}
        const [proof, keys] = {json.dumps([proof, keys])};
        verifyProof(proof, keys).then((proved) => console.log(proved.id),
                                      (error) => console.log(error.message));"""
    assert NODE is not None
    result = subprocess.run(
        [NODE, "--eval", program], capture_output=True, text=True, timeout=60, check=True
    )
    return result.stdout.strip()


@pytest.mark.skipif(NODE is None, reason="node is not installed")
def test_script_accepts_a_proof_and_refuses_a_changed_one() -> None:
    proof, keys = build_day_proof()
    assert run_script(proof, keys) == "txn_1"
    assert run_script(proof, []) == "key"
    changed = copy.deepcopy(proof)
    changed["leaf"]["entries"][0]["amount"] = "25.01"
    assert run_script(changed, keys) == "root"
    changed = copy.deepcopy(proof)
    changed["day"]["date"] = "2026-03-11"
    assert run_script(changed, keys) == "signature"
    assert run_script({**proof, "day": {**proof["day"], "totals": []}}, keys) == "totals"
    assert run_script({**proof, "transaction_id": "txn_2"}, keys) == "transaction"
    assert run_script({}, keys) == "proof"
