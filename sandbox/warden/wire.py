"""Frames between the back-end and the wardens: a JSON header, a payload, descriptors.

A frame is 12 bytes (header length, payload length; network order), the header, the payload.
Descriptors travel with the first bytes of a frame.
"""

from __future__ import annotations

import array
import json
import socket
import struct
from collections.abc import Sequence
from typing import Any

_LENGTHS = struct.Struct("!IQ")
_MAX_HEADER_BYTES = 256 * 1024 * 1024
_CHUNK_BYTES = 1 << 20

Header = dict[str, Any]


def send(
    sock: socket.socket,
    header: Header,
    payload: bytes | bytearray | memoryview = b"",
    descriptors: Sequence[int] = (),
) -> None:
    """Send one frame. Raises OSError when the other side is gone."""
    head = json.dumps(header).encode()
    first = _LENGTHS.pack(len(head), len(payload)) + head
    if descriptors:
        rights = array.array("i", descriptors).tobytes()
        sent = sock.sendmsg([first], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        first = first[sent:]
    sock.sendall(first)
    if payload:
        sock.sendall(payload)


def receive(sock: socket.socket) -> tuple[Header, bytearray, list[int]]:
    """Receive one frame. Raises EOFError when the other side ended, OSError when it broke."""
    first = bytearray()
    descriptors: list[int] = []
    while len(first) < _LENGTHS.size:
        data, ancillary, _flags, _address = sock.recvmsg(
            _LENGTHS.size - len(first), socket.CMSG_SPACE(8 * 4), socket.MSG_CMSG_CLOEXEC
        )
        for level, kind, rights in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds = array.array("i")
                fds.frombytes(rights[: len(rights) - len(rights) % fds.itemsize])
                descriptors.extend(fds)
        if not data:
            raise EOFError("the other side ended")
        first += data
    head_length, payload_length = _LENGTHS.unpack(first)
    if head_length > _MAX_HEADER_BYTES:
        raise EOFError("a frame that makes no sense")
    header: Header = json.loads(bytes(_exactly(sock, head_length)))
    return header, _exactly(sock, payload_length), descriptors


def _exactly(sock: socket.socket, length: int) -> bytearray:
    data = bytearray(length)
    view = memoryview(data)
    done = 0
    while done < length:
        got = sock.recv_into(view[done:], min(length - done, _CHUNK_BYTES))
        if not got:
            raise EOFError("the other side ended in the middle of a frame")
        done += got
    view.release()
    return data
