"""The folder in which places are kept: a locked state file, and a named pipe for each request.

The state is written in turn to one of two files, and the first byte of the lock's file says to
which: a writer that is killed half-way leaves the other one as it was. (Renaming a file over
another makes some file systems write to the disk at once.) A pipe is held open by the process that
made the request; when it is gone, however it ended, whoever opens the pipe for writing is told.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from sandbox.packing import Entry, Queue

_descriptors: set[int] = set()
"""Pipes and locks of this process: a forked child must not keep them for us."""


def _forget_all() -> None:
    for fd in _descriptors:
        with contextlib.suppress(OSError):
            os.close(fd)
    _descriptors.clear()


os.register_at_fork(after_in_child=_forget_all)


def make_pipe(folder: Path, number: int) -> int:
    """The pipe of a new request, open in this process; to be closed by `close`."""
    remove_pipe(folder, number)
    path = f"{folder}/{number}.pipe"
    os.mkfifo(path, 0o666)
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    _descriptors.add(fd)
    return fd


def remove_pipe(folder: Path, number: int) -> None:
    """Remove a pipe; a missing one is no error."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(f"{folder}/{number}.pipe")


def is_alive(folder: Path, number: int, message: bytes = b"") -> bool:
    """Whether the process of a request still has its pipe open; wakes it if there is a message."""
    try:
        fd = os.open(f"{folder}/{number}.pipe", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        return error.errno not in (errno.ENXIO, errno.ENOENT)
    try:
        if message:
            os.write(fd, message)
    except BlockingIOError:
        pass  # full of messages: it will wake
    except BrokenPipeError:
        return False
    finally:
        os.close(fd)
    return True


def occupancy(folder: Path) -> Queue:
    """Who holds and who waits now, those whose process is gone left out. Changes nothing."""
    try:
        with locked(folder, fcntl.LOCK_SH) as lock:
            queue = read_queue(folder, lock)
    except FileNotFoundError:
        return Queue()  # nobody has asked for a place yet
    queue.held = [entry for entry in queue.held if is_alive(folder, entry.number)]
    queue.waiting = [entry for entry in queue.waiting if is_alive(folder, entry.number)]
    queue.waiting.sort(key=lambda entry: (entry.turn, entry.number))
    return queue


def tidy(folder: Path) -> int:
    """Forget requests whose process is gone, with their pipes; how many there were.

    Whoever asks for a place does that too, but only when it needs the room.
    """
    try:
        with locked(folder) as lock:
            queue = read_queue(folder, lock)
            known = {entry.number for entry in (*queue.held, *queue.waiting)}
            pipes = {int(path.stem) for path in folder.glob("*.pipe") if path.stem.isdecimal()}
            dead = [number for number in known | pipes if not is_alive(folder, number)]
            for number in dead:
                remove_pipe(folder, number)
                queue.drop(number)
            if known & set(dead):
                write_queue(folder, lock, queue)
    except OSError:
        return 0  # nobody has asked for a place yet, or the folder is not ours
    return len(dead)


@contextlib.contextmanager
def locked(folder: Path, kind: int = fcntl.LOCK_EX) -> Iterator[int]:
    """Hold the folder's lock; yields its descriptor."""
    flags = os.O_CLOEXEC | (os.O_RDWR | os.O_CREAT if kind == fcntl.LOCK_EX else os.O_RDONLY)
    lock = os.open(f"{folder}/lock", flags, 0o666)
    _descriptors.add(lock)
    try:
        fcntl.flock(lock, kind)
        yield lock
    finally:
        # Closing alone would not do: a child that was forked just now has it open as well.
        fcntl.flock(lock, fcntl.LOCK_UN)
        close(lock)


def read_queue(folder: Path, lock: int) -> Queue:
    """The state, read under the lock; a new one when there is none or it was lost."""
    name = "state.1" if os.pread(lock, 1, 0) == b"1" else "state.0"
    try:
        with open(f"{folder}/{name}", "rb") as file:
            found = json.loads(file.readline())
        lists = {
            name: [Entry(**{**row, "cpu_set": tuple(row["cpu_set"])}) for row in found[name]]
            for name in ("held", "waiting")
        }
        return Queue(int(found["last_number"]), int(found["turn"]), **lists)
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        # None yet, or lost: numbers above all those that were in it.
        return Queue(last_number=time.time_ns())


def write_queue(folder: Path, lock: int, queue: Queue) -> None:
    """Write the state, under the exclusive lock."""
    name = b"0" if os.pread(lock, 1, 0) == b"1" else b"1"
    text = json.dumps(vars(queue), default=vars, separators=(",", ":")).encode() + b"\n"
    fd = os.open(f"{folder}/state.{name.decode()}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if os.pwrite(fd, text, 0) < len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(fd)
    os.pwrite(lock, name, 0)


def close(fd: int) -> None:
    """Close a pipe or a lock."""
    _descriptors.discard(fd)
    with contextlib.suppress(OSError):
        os.close(fd)
