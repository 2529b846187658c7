"""An index of keys that lies in the entries themselves, under the hashes of the chain.

It is a binary trie over the SHA-256 of the keys, shared between versions as persistent data
structures are.  An entry under a key names, for each number of bits, the last entry before it whose
key has these first bits in common with its own and then differs (0: there is none).  So the last
entry leads to the last entry of every key, and proves that a key has none, in about log2(keys) / 2
steps.  Each step reads one entry by its number and checks its hash: no index of the database is
trusted.

References: Driscoll, Sarnak, Sleator & Tarjan (1989), path copying; Crosby & Wallach (2009),
tamper-evident logs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

BITS = 256  # bits of the hash of a key, and the depth of the trie
# A key, and the path of the entry under it.  At place k of the path is the number of the last entry
# before it whose key has the first k bits in common with this key, and then differs; 0 for none.
Node = Sequence[Any]
NodesOf = Callable[[int], Sequence[Node]]  # the nodes of the entry with a number, oldest first


def descend(key: str, root: int, nodes_of: NodesOf) -> tuple[int, list[int]]:
    """Return the number of the last entry under a key, 0 for none, and the path of the next one.

    The search begins at the entry ``root``.  The path is the one that a new entry under the key
    would have.
    """
    wanted, seq = _bits(key), root
    path: list[int] = []
    while seq:
        common, before = _last_node(nodes_of(seq), wanted, len(path))
        if common == BITS:
            return seq, path + before[len(path) :]
        path += before[len(path) : common]
        path += [0] * (common - len(path))
        path.append(seq)
        seq = before[common] if common < len(before) else 0
    return 0, path


def new_nodes(keys: Sequence[str], root: int, seq: int, nodes_of: NodesOf) -> list[list[Any]]:
    """Return the nodes of entry ``seq`` under these keys, which follow the index at ``root``."""
    nodes: list[list[Any]] = []

    def with_new(number: int) -> Sequence[Node]:
        return nodes if number == seq else nodes_of(number)

    for key in keys:
        nodes.append([key, descend(key, seq if nodes else root, with_new)[1]])
    return nodes


def _last_node(nodes: Sequence[Node], wanted: int, agreed: int) -> tuple[int, list[int]]:
    """Return how many bits the last fitting node has in common with a key, and the node's path.

    A node fits if these are at least ``agreed`` bits; ``wanted`` is the hash of the key.
    """
    for key, path in reversed(nodes):
        common = BITS - (_bits(key) ^ wanted).bit_length()
        if common >= agreed:
            return common, path
    raise ValueError("the index of keys leads to an entry of other keys")


@lru_cache(maxsize=4096)
def _bits(key: str) -> int:
    return int.from_bytes(hashlib.sha256(key.encode()).digest(), "big")
