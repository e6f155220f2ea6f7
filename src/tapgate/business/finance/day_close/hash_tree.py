"""Hash tree over one day, built leaf by leaf in bounded memory.

A chunk is a subtree with up to 1,024 leaves. Because chunks are aligned, the tree over their roots
has the same root as the tree over all leaves.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from tapgate.business.finance.day_close.verify_receipt import hash_node

CHUNK_SIZE: Final = 1_024


class Step(NamedTuple):
    """Sibling on the way from a leaf to the root."""

    side: str
    hash: bytes


def compute_root(nodes: Sequence[bytes]) -> bytes | None:
    """Return the root over nodes, or None without a node. An odd node moves up unchanged."""
    while len(nodes) > 1:
        nodes = _build_level(nodes)
    return nodes[0] if nodes else None


def build_path(nodes: Sequence[bytes], index: int) -> list[Step]:
    """Return the siblings from the node at an index to the root."""
    path = []
    while len(nodes) > 1:
        sibling = index ^ 1
        if sibling < len(nodes):
            path.append(Step("left" if sibling < index else "right", nodes[sibling]))
        nodes, index = _build_level(nodes), index // 2
    return path


def _build_level(nodes: Sequence[bytes]) -> list[bytes]:
    pairs = zip(nodes[::2], nodes[1::2], strict=False)
    level = [hash_node(left, right) for left, right in pairs]
    return [*level, nodes[-1]] if len(nodes) % 2 else level
