"""The partition of a key, from the hash that the service and its .NET and Java clients share.

Bob Jenkins' lookup3 over the key's UTF-8 bytes, as in PartitionResolver.cs of azure-sdk-for-net, which is a port of the
code of the service.
"""

from __future__ import annotations

import struct

_MASK = 0xFFFFFFFF
_SEED = 0xDEADBEEF
_MIX_ROTATIONS = ((4, 6, 8), (16, 19, 4))


def partition_index(key: str, count: int) -> int:
    """Return the index, from 0, of the partition that holds a key in a hub of `count` partitions."""
    return abs(key_hash(key)) % count  # C# takes abs(hash % count), where % keeps the sign: the same number


def key_hash(key: str) -> int:
    """Return the hash of a key, a signed 16-bit number."""
    b, c = _lookup3(key.encode())
    folded = (b ^ c) & 0xFFFF
    return folded - 0x10000 if folded & 0x8000 else folded


def _lookup3(key: bytes) -> tuple[int, int]:
    a = b = c = (_SEED + len(key)) & _MASK
    if not key:
        return b, c
    *blocks, last = struct.iter_unpack("<III", key + bytes(-len(key) % 12))
    for x, y, z in blocks:
        a, b, c = _mix((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)
    x, y, z = last
    return _finish((a + x) & _MASK, (b + y) & _MASK, (c + z) & _MASK)


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK


def _mix(a: int, b: int, c: int) -> tuple[int, int, int]:
    for first, second, third in _MIX_ROTATIONS:
        a, c = ((a - c) & _MASK) ^ _rotate(c, first), (c + b) & _MASK
        b, a = ((b - a) & _MASK) ^ _rotate(a, second), (a + c) & _MASK
        c, b = ((c - b) & _MASK) ^ _rotate(b, third), (b + a) & _MASK
    return a, b, c


def _finish(a: int, b: int, c: int) -> tuple[int, int]:
    c = ((c ^ b) - _rotate(b, 14)) & _MASK
    a = ((a ^ c) - _rotate(c, 11)) & _MASK
    b = ((b ^ a) - _rotate(a, 25)) & _MASK
    c = ((c ^ b) - _rotate(b, 16)) & _MASK
    a = ((a ^ c) - _rotate(c, 4)) & _MASK
    b = ((b ^ a) - _rotate(a, 14)) & _MASK
    c = ((c ^ b) - _rotate(b, 24)) & _MASK
    return b, c
