"""Places for sandboxes on this machine, shared by all processes that use one folder.

    places = Places(home / "places")
    place = places.acquire(cpus=1, memory_bytes=512 * 1024**2, party="run-7")
    ...
    place.release()  # or `with places.acquire(...):`

No daemon: a state file, changed under a lock, says who holds and who waits (see `packing` for
the rules, `place_files` for the files, and its `occupancy` for a look).
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from sandbox import place_files
from sandbox.errors import Refused, SandboxUnavailable
from sandbox.machine import Machine
from sandbox.packing import Capacity, Entry, Queue, choose_cpus, to_millicpus
from sandbox.place_files import is_alive, occupancy

_LOOK_SECONDS = 0.1
"""How often whoever is first looks for places whose holder died, and at the machine's memory."""
_LOOK_AT_MOST_SECONDS = 2.0
_SHORT_OF_MEMORY_SECONDS = 60.0
_PRESSURE = 0.2
_GIB = 1024**3


class Place:
    """Room for one sandbox. `cpu_set` is empty when it may run on every CPU.

    `waited_seconds` is 0 when there was room at once.
    """

    def __init__(self, places: Places, entry: Entry, fd: int, waited_seconds: float) -> None:
        self.cpu_set = entry.cpu_set
        self.waited_seconds = waited_seconds
        self._places = places
        self._number = entry.number
        self._fd = fd
        self._pid = os.getpid()

    def release(self) -> None:
        """Let the next one in. May be called twice."""
        fd, self._fd = self._fd, -1
        if fd >= 0 and self._pid == os.getpid():
            self._places._leave(self._number, fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.release()


class Places:
    """All the places of this machine, in a folder that back-ends share.

    `capacity` is by default what this machine has; give more CPUs than there are to over-commit.
    """

    def __init__(
        self, folder: Path, *, capacity: Capacity | None = None, machine: Machine | None = None
    ) -> None:
        self.folder = folder
        self.machine = machine or Machine()
        self.capacity = capacity or self.machine.capacity()
        folder.mkdir(parents=True, exist_ok=True)

    def check(self, memory_bytes: int) -> None:
        """Raises Refused when so much memory can never be had here."""
        if memory_bytes > self.capacity.memory_bytes:
            asked, there = memory_bytes / _GIB, self.capacity.memory_bytes / _GIB
            raise Refused(
                f"{asked:.1f} GiB of memory were asked for (the disk included where it is in "
                f"memory), and sandboxes of this machine have {there:.1f}"
            )

    def acquire(
        self,
        *,
        cpus: float | None = None,
        memory_bytes: int = 0,
        party: str = "",
        timeout_seconds: float | None = None,
    ) -> Place:
        """Wait until there is room and take it.

        Without `cpus` a whole one is counted, and the place is not bound to any. More CPUs than
        the machine has count as all of them. `memory_bytes` is all memory that may be used,
        files in memory included. Raises Refused when that much can never be had here, and
        SandboxUnavailable when there was no room in time, or the folder cannot be used.
        """
        self.check(memory_bytes)
        millicpus = min(to_millicpus(1 if cpus is None else cpus), self.capacity.millicpus)
        wanted = Entry(
            0,
            party,
            0,
            millicpus,
            memory_bytes,
            cpus is not None,
            pid=os.getpid(),
            since=time.time(),
        )
        try:
            return self._acquire(wanted, timeout_seconds)
        except OSError as error:
            raise SandboxUnavailable(f"the folder of places could not be used: {error}") from error

    def _acquire(self, wanted: Entry, timeout_seconds: float | None) -> Place:
        started, waited = time.monotonic(), 0.0
        number, fd = 0, -1
        try:
            with self._locked() as queue:
                number = queue.join(wanted).number
                fd = place_files.make_pipe(self.folder, number)
                taken = self._try(queue, number)
            if taken is None:
                taken = self._wait(number, fd, started, timeout_seconds)
                waited = time.monotonic() - started
            return Place(self, taken, fd, waited)
        except BaseException:
            if fd >= 0:
                self._leave(number, fd)
            raise

    def _wait(self, number: int, fd: int, started: float, timeout_seconds: float | None) -> Entry:
        poll = select.poll()
        poll.register(fd, select.POLLIN)
        short_since: float | None = None
        while True:
            with self._locked() as queue:
                taken = self._try(queue, number)
                if taken is not None:
                    return taken
                position = queue.position(number)
                is_short = position == 0 and not queue.held
            now = time.monotonic()
            short_since = (short_since or now) if is_short else None
            if short_since is not None and now - short_since >= _SHORT_OF_MEMORY_SECONDS:
                raise SandboxUnavailable(self._shortage())
            seconds = min(_LOOK_SECONDS * (position + 1), _LOOK_AT_MOST_SECONDS)
            if timeout_seconds is not None:
                seconds = min(seconds, started + timeout_seconds - now)
                if seconds <= 0:
                    raise SandboxUnavailable(f"no room for a sandbox within {timeout_seconds:g} s")
            if poll.poll(seconds * 1000):
                os.read(fd, 4096)

    def _try(self, queue: Queue, number: int) -> Entry | None:
        """Take the place if it is our turn and there is room; who died is out of our way."""
        while (first := queue.first()) is not None and first.number != number:
            if is_alive(self.folder, first.number):
                return None
            self._forget(queue, first.number)
        try:
            mine = queue.find(number)
        except KeyError:
            raise SandboxUnavailable("the folder of places was emptied while waiting") from None
        if not queue.fits(mine, self.capacity):
            for other in list(queue.held):
                if not is_alive(self.folder, other.number):
                    self._forget(queue, other.number)
            if not queue.fits(mine, self.capacity):
                return None
        if not self._machine_has_room(queue, mine):
            return None
        return queue.admit(number, self.capacity, time.time())

    def _machine_has_room(self, queue: Queue, entry: Entry) -> bool:
        """Whether memory is really free: declared limits say nothing of other programs.

        A quarter of what may be used, since limits are ceilings; for the only one, nothing.
        """
        spare = self.machine.available_bytes() - self.machine.reserve_bytes // 2
        if not queue.held:
            return spare >= 0
        return spare >= entry.memory_bytes // 4 and self.machine.memory_pressure() < _PRESSURE

    def _shortage(self) -> str:
        free = self.machine.available_bytes() / _GIB
        return f"only {free:.1f} GiB of this machine's memory are free, too few for a sandbox"

    def _leave(self, number: int, fd: int) -> None:
        try:
            with self._locked() as queue:
                self._forget(queue, number)
        except OSError:
            pass  # the closed pipe says it too
        finally:
            place_files.close(fd)

    def beside(self, cpus: float | None) -> tuple[int, ...]:
        """The CPUs for a sandbox that is not counted: those that are least in use."""
        if cpus is None:
            return ()
        wanted = Entry(0, "", 0, min(to_millicpus(cpus), self.capacity.millicpus), 0)
        try:
            held = occupancy(self.folder).held
        except OSError:
            held = []
        return choose_cpus(wanted, held, self.capacity)

    # -- the folder ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Queue]:
        """The state, written back if the block changed it; then whoever is next is woken."""
        with place_files.locked(self.folder) as lock:
            queue = place_files.read_queue(self.folder, lock)
            before, first = (list(queue.held), list(queue.waiting)), queue.first()
            yield queue
            if before != (queue.held, queue.waiting):
                place_files.write_queue(self.folder, lock, queue)
                self._wake_first(queue, first)

    def _wake_first(self, queue: Queue, before: Entry | None) -> None:
        """Wake whose turn it is, when there is room or when it was not its turn before."""
        first = queue.first()
        if first is not None and (first != before or queue.fits(first, self.capacity)):
            is_alive(self.folder, first.number, message=b"!")

    def _forget(self, queue: Queue, number: int) -> None:
        place_files.remove_pipe(self.folder, number)
        queue.drop(number)
