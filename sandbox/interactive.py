"""A person's terminal inside a sandbox."""

from __future__ import annotations

import array
import contextlib
import fcntl
import os
import select
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Protocol, runtime_checkable

from sandbox.base import Backend, Sandbox
from sandbox.contracts import Image, Limits, NetworkPolicy, SandboxFile
from sandbox.errors import Refused

_CHUNK_BYTES = 65_536
_RESIZE = 0x5414  # TIOCSWINSZ
SHELL = ("bash", "--noprofile", "--norc", "-i")


@runtime_checkable
class HasTerminal(Protocol):
    """A sandbox that can give a terminal."""

    def open_terminal(self, command: Sequence[str], rows: int, columns: int) -> int:
        """Start a command on a terminal; the descriptor of the terminal's other end."""
        ...

    def wait_terminal(self) -> int:
        """The exit status of that command, once it has ended."""
        ...


@runtime_checkable
class StartsUncounted(Protocol):
    """A back-end that packs its sandboxes, and can start one beside the packing."""

    def start_uncounted(self, image: Image, limits: Limits, network: NetworkPolicy) -> Sandbox:
        """As `Backend.start`, without waiting for a free place."""
        ...


def open_terminal(
    backend: Backend,
    image: Image,
    limits: Limits,
    network: NetworkPolicy,
    folders: Sequence[tuple[str, Sequence[SandboxFile]]] = (),
    *,
    command: Sequence[str] = SHELL,
) -> int:
    """Run a shell in a fresh sandbox on this process's own terminal; returns its exit status.

    `folders` are put in first, each at its absolute path. Without a terminal, standard input is
    passed on as it comes. Raises Refused when the back-end offers no terminal.
    """
    # A person who thinks should not keep a worker waiting for a place.
    start = backend.start_uncounted if isinstance(backend, StartsUncounted) else backend.start
    with start(image, limits, network) as sandbox:
        if not isinstance(sandbox, HasTerminal):
            raise Refused(f"{backend.name} offers no terminal; bubblewrap-image does")
        for at, files in folders:
            sandbox.write_files(files, at)
        columns, rows = shutil.get_terminal_size()
        fd = sandbox.open_terminal(command, rows, columns)
        try:
            relay(fd, sys.stdin.fileno(), sys.stdout.fileno())
        finally:
            os.close(fd)
        return sandbox.wait_terminal()


def relay(terminal: int, source: int, target: int) -> None:
    """Pass bytes between a sandbox's terminal and ours until the sandbox's side ends."""
    with _raw(source), _resized(terminal, source):
        sources = [terminal, source]
        while True:
            ready, _writable, _broken = select.select(sources, [], [])
            if terminal in ready:
                try:
                    data = os.read(terminal, _CHUNK_BYTES)
                except OSError:
                    return  # the last holder of the terminal's inner end is gone
                if not data:
                    return
                _write_all(target, data)
            if source in ready:
                data = os.read(source, _CHUNK_BYTES)
                if not data:
                    sources.remove(source)
                    data = b"\x04"  # end of input, as a terminal says it
                _write_all(terminal, data)


def _write_all(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


@contextlib.contextmanager
def _raw(fd: int) -> Iterator[None]:
    if not os.isatty(fd):
        yield
        return
    before = termios.tcgetattr(fd)
    try:
        tty.setraw(fd)
        yield
    finally:
        termios.tcsetattr(fd, termios.TCSAFLUSH, before)


@contextlib.contextmanager
def _resized(terminal: int, source: int) -> Iterator[None]:
    """Tell the sandbox when the window changes its size."""
    if not os.isatty(source):
        yield
        return

    def resize(_number: int, _frame: FrameType | None) -> None:
        size = os.get_terminal_size(source)
        packed = array.array("H", [size.lines, size.columns, 0, 0])
        fcntl.ioctl(terminal, _RESIZE, packed)

    before = signal.signal(signal.SIGWINCH, resize)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)
