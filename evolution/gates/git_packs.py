"""The objects of a git pack file, dangling ones too, with deltas resolved where they can be."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

_DELTA_BY_OFFSET, _DELTA_BY_NAME = 6, 7
MOST_OBJECTS = 50_000


def pack_objects(data: bytes, budget: int) -> Iterator[bytes]:
    """Contents of a pack's objects in order, at most `budget` bytes of them.

    Deltas against objects of other packs are given as the bytes that they add. A broken pack ends
    the search where it breaks.
    """
    at = 12
    whole: dict[int, bytes] = {}
    count = min(int.from_bytes(data[8:12], "big"), MOST_OBJECTS)
    for _ in range(count):
        start = at
        try:
            kind, at = _head(data, at)
            base: bytes | None = None
            if kind == _DELTA_BY_OFFSET:
                back, at = _offset(data, at)
                base = whole.get(start - back)
            elif kind == _DELTA_BY_NAME:
                at += 20
            opener = zlib.decompressobj()
            content = opener.decompress(data[at:], budget)
            at = len(data) - len(opener.unused_data)
            if kind in (_DELTA_BY_OFFSET, _DELTA_BY_NAME):
                content = _applied(base or b"", content)
        except (zlib.error, IndexError):
            return
        if not opener.eof:
            return
        budget -= len(content)
        whole[start] = content
        if budget <= 0:
            return
        yield content


def _head(data: bytes, at: int) -> tuple[int, int]:
    """An object's kind, and where its content begins."""
    kind = data[at] >> 4 & 7
    while data[at] & 0x80:
        at += 1
    return kind, at + 1


def _offset(data: bytes, at: int) -> tuple[int, int]:
    value = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        value = ((value + 1) << 7) | (data[at] & 0x7F)
    return value, at + 1


def _number(delta: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (delta[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not delta[at - 1] & 0x80:
            return value, at


def _applied(base: bytes, delta: bytes) -> bytes:
    """What a delta makes of its base. Raises IndexError on a broken one."""
    _, at = _number(delta, 0)
    _, at = _number(delta, at)
    parts = []
    while at < len(delta):
        code = delta[at]
        at += 1
        if code & 0x80:
            offset = size = 0
            for bit in range(7):
                if code >> bit & 1:
                    value = delta[at]
                    at += 1
                    if bit < 4:
                        offset |= value << 8 * bit
                    else:
                        size |= value << 8 * (bit - 4)
            parts.append(base[offset : offset + (size or 0x10000)])
        else:
            parts.append(delta[at : at + code])
            at += code
    return b"".join(parts)
