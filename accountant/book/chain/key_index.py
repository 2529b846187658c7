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
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

BITS = 256  # bits of the hash of a key, and the depth of the trie
# A key, and the path of the entry under it.  At place k of the path is the number of the last entry
# before it whose key has the first k bits in common with this key, and then differs; 0 for none.
Node = Sequence[Any]
NodesOf = Callable[[int], Sequence[Node]]  # the nodes of the entry with a number, oldest first
LEAF = -1  # stands in a `KeyTrie` where other nodes have a child


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


class KeyTrie:
    """The last entry under each key of a log that is read from its begin on, in little memory.

    It computes paths from their definition, so verification does not rely on `descend`.
    """

    def __init__(self) -> None:
        # The children of each node, for a bit 0 and for a bit 1; 0 for none, as the root is node 0.
        # A leaf has `LEAF` and the number of its key in their place.
        self._children = array("q"), array("q")
        self._last_seqs = array("q")  # the last entry under any key below each node
        self._keys: list[str] = []

    def put(self, key: str, seq: int) -> list[int]:
        """Let entry ``seq`` be the last one under a key, and return the path that it has there."""
        wanted, node, path = _bits(key), 0, list[int]()
        (zeros, ones), last_seqs = self._children, self._last_seqs
        if not self._keys:
            self._new_leaf(key, seq)
        while zeros[node] != LEAF or self._keys[ones[node]] != key:
            if zeros[node] == LEAF:
                # The leaf becomes the child of a new node in its place, whose key has more bits.
                number = ones[node]
                pushed = self._new_node(LEAF, number, last_seqs[node])
                leaf_bit = _bit(_bits(self._keys[number]), len(path))
                self._children[leaf_bit][node], self._children[1 - leaf_bit][node] = pushed, 0
            child, sibling = zeros[node], ones[node]
            if bit := _bit(wanted, len(path)):
                child, sibling = sibling, child
            path.append(last_seqs[sibling] if sibling else 0)
            last_seqs[node] = seq
            if not child:
                child = self._children[bit][node] = self._new_leaf(key, seq)
            node = child
        last_seqs[node] = seq
        return path

    def last_seqs(self) -> dict[str, int]:
        """Return the number of the last entry under each key."""
        nodes = zip(*self._children, self._last_seqs, strict=True)
        return {self._keys[number]: seq for mark, number, seq in nodes if mark == LEAF}

    def _new_leaf(self, key: str, seq: int) -> int:
        """Add the leaf of a new key, and return its number."""
        self._keys.append(key)
        return self._new_node(LEAF, len(self._keys) - 1, seq)

    def _new_node(self, zero: int, one: int, seq: int) -> int:
        for column, number in zip(
            (*self._children, self._last_seqs), (zero, one, seq), strict=True
        ):
            column.append(number)
        return len(self._last_seqs) - 1


def _bit(bits: int, depth: int) -> int:
    """Return one bit of the hash of a key; the root of the trie has the depth 0."""
    return bits >> (BITS - 1 - depth) & 1


@lru_cache(maxsize=4096)
def _bits(key: str) -> int:
    # A key that is no text is a TypeError, as all of what else a damaged entry can hold.
    return int.from_bytes(hashlib.sha256(str.encode(key)).digest(), "big")
