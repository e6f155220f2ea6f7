"""The worked example of closed days can be recomputed, and the published script is the program."""

import hashlib
import json
import re
from pathlib import Path

from tapgate.business.finance.day_close import verify_receipt
from tapgate.business.finance.day_close.hash_tree import compute_root

DOCS = Path(__file__).parents[2] / "docs"


def test_worked_example_of_the_hash_tree_can_be_recomputed() -> None:
    section = (DOCS / "ledger.md").read_text().partition("### Hash tree")[2]
    section = section.partition("### Inclusion proofs")[0]
    leaves = [line for line in section.splitlines() if line.startswith('{"entries"')]
    hashes = re.findall(r"`([0-9a-f]{64})`", section)
    first, second, third = (hashlib.sha256(b"\x00" + leaf.encode()).digest() for leaf in leaves)
    node = hashlib.sha256(b"\x01" + first + second).digest()
    root = hashlib.sha256(b"\x01" + node + third).digest()
    assert hashes == [item.hex() for item in (first, second, third, node, root)]
    assert compute_root([first, second, third]) == root
    for leaf, digest in zip(leaves, (first, second, third), strict=True):
        assert verify_receipt.encode_canonically(json.loads(leaf)).decode() == leaf
        assert verify_receipt.hash_leaf(json.loads(leaf)) == digest


def test_script_in_the_guide_is_the_program() -> None:
    page = (DOCS / "verify-receipt.md").read_text()
    script = page.partition("```python\n")[2].rpartition("```")[0]
    assert script == Path(verify_receipt.__file__).read_text()
