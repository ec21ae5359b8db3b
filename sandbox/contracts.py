"""What crosses the floor between a sandbox and those who use it: frozen values only."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

OUTPUT_CAP_BYTES = 10 * 1024 * 1024
"""The most that is kept of one output stream of one command, in bytes."""
HOST_NAME = "sandbox"
"""What every sandbox calls itself unless a trial wants another name."""


@dataclass(frozen=True, slots=True, order=True)
class SandboxFile:
    """One file of a tree: a regular file, or a symbolic link when `link` is set.

    `path` is POSIX, relative and normalised ("data/access.log"), except among artifacts, where it
    is absolute. `mode` holds the permission bits only (0o644, 0o755). A `path` that ends in "/" is
    a folder in which nothing is carried along: what replaces a folder may be empty.
    """

    path: str
    data: bytes = b""
    mode: int = 0o644
    link: str | None = None

    @property
    def is_folder(self) -> bool:
        """Whether this is an empty folder, no file."""
        return self.path.endswith("/")

    @property
    def digest(self) -> str:
        """SHA-256 of the content (of the target, for a link), in hex."""
        return hashlib.sha256(self.data if self.link is None else _bytes(self.link)).hexdigest()


def tree_digest(files: Iterable[SandboxFile]) -> str:
    """SHA-256 in hex over path, kind, mode and content of every file, in order of path."""
    total = hashlib.sha256()
    for file in sorted(files):
        kind = "l" if file.link is not None else "f"
        total.update(_bytes(f"{file.path}\0{kind}\0{file.mode:o}\0{file.digest}\n"))
    return total.hexdigest()


def _bytes(name: str) -> bytes:
    """The bytes of a name; those that are no UTF-8 come as Python's file systems carry them."""
    return name.encode("utf-8", "surrogateescape")


class NetworkMode(StrEnum):
    """What of the network a sandbox may reach; Harbor's words."""

    PUBLIC = "public"
    NO_NETWORK = "no-network"
    ALLOWLIST = "allowlist"


@dataclass(frozen=True, slots=True)
class NetworkPolicy:
    """A network mode, with the hosts of an allow-list."""

    mode: NetworkMode = NetworkMode.NO_NETWORK
    allowed_hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """Ceilings of one sandbox; None means that nothing was asked for (the back-end's default)."""

    cpus: float | None = None
    memory_bytes: int | None = None
    disk_bytes: int | None = None
    processes: int | None = 512
    descriptors: int | None = 4096


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder of this machine that a sandbox sees, read-only, at `target` (an absolute path)."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """What a sandbox's root file system is built from.

    `files` is the build context (the bundle's `environment/` folder, Dockerfile included).
    `is_host_root_compatible` says that the bundle may run on the host's own read-only `/usr`.
    """

    files: tuple[SandboxFile, ...]
    docker_image: str | None = None
    workdir: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    is_host_root_compatible: bool = False
    build_timeout_seconds: float = 600.0

    @property
    def digest(self) -> str:
        """SHA-256 in hex of everything that decides what the image contains."""
        head = f"{self.docker_image}\0{self.workdir}\0{self.env}\0{self.is_host_root_compatible}\n"
        return hashlib.sha256((head + tree_digest(self.files)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Image:
    """A root file system that is ready to start from. `ref` belongs to the back-end alone."""

    digest: str
    backend: str
    ref: str
    workdir: str
    env: tuple[tuple[str, str], ...] = ()
    user: str | None = None
    build_seconds: float = 0.0
    was_cached: bool = True


@dataclass(frozen=True, slots=True)
class ExecResult:
    """A command that ran, whether it failed or not. Streams are bytes, capped, never decoded."""

    exit_status: int
    stdout: bytes
    stderr: bytes
    truncated: bool
    timed_out: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What a sandbox has spent so far. None where the back-end cannot tell."""

    peak_memory_bytes: int | None = None
    cpu_seconds: float | None = None
    peak_processes: int | None = None
    disk_bytes: int | None = None
    oom_kills: int = 0
    is_disk_full: bool = False
    struck: tuple[str, ...] = ()
    """The limits that struck, by name: memory, disk, processes, descriptors."""


@dataclass(frozen=True, slots=True)
class Trace:
    """What a solver did, seen from outside its processes.

    Paths are absolute, inside the sandbox, sorted; files under /usr, /lib, /proc, /dev, /sys,
    /etc/ld* and /solution are left out. `programs` are the executed programs' base names in order
    of their first start. `written` and `deleted` come from the writable layer.
    """

    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    commands: tuple[tuple[str, ...], ...] = ()
    """The executed argument vectors in order, at most 500, each argument cut to 200 characters."""
    is_complete: bool = True
    note: str = ""

    @property
    def is_blind(self) -> bool:
        """Whether reads and programs could not be followed at all, so that none says nothing."""
        return not (self.is_complete or self.read or self.commands)


class SolverEnd(StrEnum):
    """How the solver phase ended: a label beside the outcome, never an outcome."""

    DONE = "done"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    QUOTA = "quota"


class Outcome(StrEnum):
    """What a trial came to: a closed set."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    INVALID_REWARD = "invalid_reward"
    INFRA_ERROR = "infra_error"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class SolverSpec:
    """What happens in the solver phase.

    `files` are put under /solution; `command` is run in the image's working directory with a
    login-free bash. No command means that nothing is done (nop).
    """

    name: str
    files: tuple[SandboxFile, ...] = ()
    command: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    user: str | None = None
    timeout_seconds: float = 120.0


@dataclass(frozen=True, slots=True)
class ArtifactSpec:
    """A path that is carried from the solver's sandbox to a separate verifier.

    `has_folders`: reading it yields the folders too in which nothing else is carried; see
    `SandboxFile`. Special files and what is excluded do not fill a folder.
    """

    source: str
    exclude: tuple[str, ...] = ()
    has_folders: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class ToolchainUse:
    """What the trusted toolchain stands in for while tests run; see `sandbox.toolchain`.

    `packages` are distributions that the tests asked for beside pytest and its CTRF report.
    `is_isolated`: they asked for an environment of its own (uv), not for the image's Python (pip).
    `is_apt_replaced`: nothing that the script installs by apt is needed any more.
    """

    packages: tuple[str, ...] = ()
    is_isolated: bool = True
    is_apt_replaced: bool = False
    release: str = "pytest 8.4.1"


@dataclass(frozen=True, slots=True)
class VerifierSpec:
    """How the work is judged: `files` at /tests, `/tests/test.sh` run, the reward read.

    `is_separate`: judged in a clean sandbox of `image` (the solver's own image when None), which
    receives the artifacts at their own paths; a folder among them replaces what is there.
    No `files` with an `image` of its own means that the image brings its `/tests`.
    With `toolchain`, what the tests would fetch comes from a read-only mount. `remarks` are lines
    for people, which go to the trial's notes.
    """

    files: tuple[SandboxFile, ...]
    is_separate: bool = True
    artifacts: tuple[ArtifactSpec, ...] = ()
    image: ImageSpec | None = None
    env: tuple[tuple[str, str], ...] = ()
    user: str | None = None
    timeout_seconds: float = 120.0
    artifact_cap_bytes: int = 256 * 1024 * 1024
    toolchain: ToolchainUse | None = None
    remarks: tuple[str, ...] = ()
    ends_solver: bool = False
    """Whether what the solver left running is ended before the tests come into its sandbox."""

    @property
    def has_tests_in_image(self) -> bool:
        """Whether `/tests` is the image's own: nothing is put there, nor taken away."""
        return not self.files and self.is_separate and self.image is not None

    def replaced_folders(self, state: Iterable[SandboxFile]) -> tuple[str, ...]:
        """The artifacts that are folders in this state: what the image has there goes first.

        So it is with Harbor, and a file that the solver deleted does not come back.
        """
        paths = [file.path for file in state]  # an empty folder is there under its own path + "/"
        sources = [artifact.source.rstrip("/") for artifact in self.artifacts]
        return tuple(s for s in sources if s and any(p.startswith(f"{s}/") for p in paths))


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """One trial. With `state`, the solver phase is skipped and these artifacts are judged."""

    image: ImageSpec
    solver: SolverSpec
    verifier: VerifierSpec
    limits: Limits = Limits()
    network: NetworkPolicy = NetworkPolicy()
    state: tuple[SandboxFile, ...] | None = None
    is_traced: bool = False
    keep_state: bool = False
    """Whether the result shall carry the artifacts as the solver left them."""
    host_name: str = HOST_NAME

    @property
    def key(self) -> str:
        """SHA-256 in hex of all that decides the trial's result (tracing is not part of it)."""
        parts = [
            self.image.digest,
            repr((self.solver.name, self.solver.command, self.solver.env, self.solver.user)),
            repr(self.solver.timeout_seconds),
            tree_digest(self.solver.files),
            tree_digest(self.verifier.files),
            repr((self.verifier.is_separate, self.verifier.artifacts, self.verifier.env)),
            repr((self.verifier.user, self.verifier.timeout_seconds)),
            self.verifier.image.digest if self.verifier.image else "",
            repr((self.limits, self.network.mode.value, self.network.allowed_hosts)),
            "" if self.state is None else tree_digest(self.state),
        ]
        if self.verifier.toolchain is not None:
            parts.append(repr(self.verifier.toolchain))
        if self.verifier.ends_solver:
            parts.append("ends the solver's processes")
        if self.host_name != HOST_NAME:
            parts.append(f"on {self.host_name}")
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One test of the verifier, from its CTRF report. `status` is CTRF's word."""

    name: str
    status: str
    message: str = ""

    @property
    def is_passed(self) -> bool:
        """Whether this check passed."""
        return self.status == "passed"


@dataclass(frozen=True, slots=True)
class TrialResult:
    """What happened in one trial.

    `rewards` is empty unless the outcome is pass or fail. `error` is one plain line that says what
    broke, where, for the outcomes invalid_reward and infra_error. `phases` are seconds by phase:
    prepare, wait (for a place on this machine), start, solver, collect, verifier, stop. `notes`
    name what could not be enforced as asked.
    `solver_output` and `verifier_output` are the last bytes of both streams, as they came.
    `toolchain` says what ran the tests when it came from the trusted mount, else it is empty.
    """

    outcome: Outcome
    rewards: tuple[tuple[str, float], ...] = ()
    solver_end: SolverEnd = SolverEnd.DONE
    solver_exit_status: int | None = None
    checks: tuple[CheckResult, ...] = ()
    phases: tuple[tuple[str, float], ...] = ()
    usage: Usage = Usage()
    solver_output: bytes = b""
    verifier_output: bytes = b""
    state_digest: str | None = None
    state: tuple[SandboxFile, ...] | None = None
    trace: Trace | None = None
    error: str = ""
    backend: str = ""
    image_digest: str = ""
    sandboxes: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    toolchain: str = ""

    @property
    def reward(self) -> float | None:
        """The reward under the key `reward`, or under the only key; None when there is none."""
        values = dict(self.rewards)
        if "reward" in values:
            return values["reward"]
        return next(iter(values.values())) if len(values) == 1 else None

    @property
    def is_passed(self) -> bool:
        """Whether the trial earned full reward."""
        return self.outcome is Outcome.PASS

    @property
    def failed_checks(self) -> frozenset[str]:
        """Names of the checks that did not pass."""
        return frozenset(check.name for check in self.checks if not check.is_passed)
