"""One trial: a fresh sandbox for the solver, its work carried over, a verdict, and what it cost.

    runner = Runner(BubblewrapBackend(runtime_dir=..., cache_dir=...))
    result = runner.run(TrialSpec(image, solver, verifier))

What breaks in the machinery is the outcome `infra_error`; only Refused, ImageBuildFailed and
SandboxUnavailable of `prepare` reach the caller of `prepare` itself.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sandbox.accounts import cut_short_by, struck_limits, total
from sandbox.base import Backend, Sandbox, Work
from sandbox.contracts import (
    ArtifactSpec,
    CheckResult,
    ExecResult,
    Image,
    ImageSpec,
    Mount,
    Outcome,
    SandboxFile,
    SolverEnd,
    ToolchainUse,
    Trace,
    TrialResult,
    TrialSpec,
    Usage,
    tree_digest,
)
from sandbox.errors import (
    ImageBuildFailed,
    Refused,
    SandboxError,
    SandboxUnavailable,
    TooDeep,
    TooLarge,
)
from sandbox.rewards import (
    CTRF,
    CTRF_CAP_BYTES,
    REWARD_CAP_BYTES,
    REWARD_JSON,
    REWARD_TEXT,
    InvalidReward,
    Rewards,
    read_checks,
    read_rewards,
)
from sandbox.shortcuts import without_shortcuts
from sandbox.toolchain import (
    NOTE,
    Toolchain,
    described,
    probe_command,
    says_no_pytest,
    test_command,
    test_environment,
)

OUTPUT_TAIL_BYTES = 8192
_VERIFIER_LOGS = "/logs/verifier"
_ALWAYS_THERE = frozenset(("/logs/artifacts/",))
"""Empty folders that every sandbox has: to carry them would say nothing."""


@dataclass
class _Record:
    """What is known of a trial while it runs."""

    phases: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    sandboxes: int = 0
    solver_end: SolverEnd = SolverEnd.DONE
    solver_exit_status: int | None = None
    solver_output: bytes = b""
    verifier_output: bytes = b""
    state: tuple[SandboxFile, ...] | None = None
    trace: Trace | None = None
    rewards: Rewards = ()
    checks: tuple[CheckResult, ...] = ()
    toolchain: str = ""

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time spent inside to a phase."""
        started = time.monotonic()
        try:
            yield
        finally:
            spent = time.monotonic() - started
            self.phases[name] = self.phases.get(name, 0.0) + spent

    def move(self, source: str, target: str, seconds: float) -> None:
        """Count a part of one phase as another one."""
        if seconds:
            self.phases[source] -= seconds
            self.phases[target] = self.phases.get(target, 0.0) + seconds

    def note(self, text: str) -> None:
        """Add a line for people, once."""
        if text and text not in self.notes:
            self.notes.append(text)


class Runner:
    """Runs trials on a back-end; implements `TrialRunner`. May be used by many threads.

    `party` names on whose behalf sandboxes are asked for; see `Backend.start`. Without a
    `toolchain`, trials whose tests need one end as `infra_error`.
    """

    def __init__(
        self, backend: Backend, *, party: str = "", toolchain: Toolchain | None = None
    ) -> None:
        self.backend = backend
        self.party = party
        self.toolchain = toolchain

    def prepare(self, spec: ImageSpec) -> Image:
        """See `TrialRunner.prepare`."""
        return self.backend.prepare(spec)

    def run(self, spec: TrialSpec) -> TrialResult:
        """See `TrialRunner.run`."""
        return self._tried(spec, None)

    def attempt(self, spec: TrialSpec, work: Work) -> TrialResult:
        """See `AttemptRunner.attempt`."""
        return self._tried(spec, work)

    def _tried(self, spec: TrialSpec, work: Work | None) -> TrialResult:
        started = time.monotonic()
        record = _Record()
        outcome, error = Outcome.INFRA_ERROR, ""
        try:
            self._run(spec, record, work)
            outcome = Outcome.PASS if _is_full(record.rewards) else Outcome.FAIL
        except InvalidReward as invalid:
            outcome, error = Outcome.INVALID_REWARD, str(invalid)
        except ImageBuildFailed as failure:
            tail = failure.log.strip().rsplit("\n", 1)[-1]
            error = f"{failure}: {tail}" if tail else str(failure)
        except (SandboxError, OSError) as failure:
            error = str(failure)
        return self._result(spec, record, outcome, error, time.monotonic() - started)

    def _result(
        self, spec: TrialSpec, record: _Record, outcome: Outcome, error: str, seconds: float
    ) -> TrialResult:
        is_valid = outcome in (Outcome.PASS, Outcome.FAIL)
        state = record.state
        return TrialResult(
            outcome=outcome,
            rewards=record.rewards if is_valid else (),
            solver_end=record.solver_end,
            solver_exit_status=record.solver_exit_status,
            checks=record.checks,
            phases=tuple(record.phases.items()),
            usage=total(record.usages),
            solver_output=record.solver_output,
            verifier_output=record.verifier_output,
            state_digest=tree_digest(state) if state is not None else None,
            state=state if spec.keep_state else None,
            trace=record.trace,
            error=error.replace("\n", " ")[:1000],
            backend=self.backend.name,
            image_digest=spec.image.digest,
            sandboxes=record.sandboxes,
            seconds=seconds,
            notes=tuple(record.notes),
            toolchain=record.toolchain,
        )

    def _run(self, spec: TrialSpec, record: _Record, work: Work | None) -> None:
        for remark in spec.verifier.remarks:
            record.note(remark)
        with record.phase("prepare"):
            image = self.backend.prepare(spec.image)
            judge = image
            if spec.verifier.is_separate and spec.verifier.image is not None:
                judge = self.backend.prepare(spec.verifier.image)
            mounts = self._mounts(spec)
        if spec.state is not None:
            record.state = tuple(sorted(spec.state))
            self._judge_in_new_sandbox(spec, judge, mounts, record)
            return
        shared = () if spec.verifier.is_separate else mounts
        with self._sandbox(spec, image, shared, record) as sandbox:
            self._solve(spec, sandbox, record, work)
            self._collect(spec, sandbox, record)
            if not spec.verifier.is_separate:
                self._judge(spec, sandbox, image, record)
        if spec.verifier.is_separate:
            self._judge_in_new_sandbox(spec, judge, mounts, record)

    @contextmanager
    def _sandbox(
        self, spec: TrialSpec, image: Image, mounts: Sequence[Mount], record: _Record
    ) -> Iterator[Sandbox]:
        limits = spec.limits
        if record.state and limits.disk_bytes is not None:
            # What was carried over took its share of the solver's disk; the tests have their own.
            limits = replace(limits, disk_bytes=limits.disk_bytes + _bytes_on_disk(record.state))
        with record.phase("start"):
            sandbox = self.backend.start(
                image,
                limits,
                spec.network,
                mounts=mounts,
                party=self.party,
                host_name=spec.host_name,
            )
        record.sandboxes += 1
        record.move("start", "wait", getattr(sandbox, "waited_seconds", 0.0))
        for note in getattr(sandbox, "notes", ()):
            record.note(note)
        try:
            yield sandbox
            record.usages.append(sandbox.usage())
        finally:
            with record.phase("stop"):
                sandbox.stop()

    def _mounts(self, spec: TrialSpec) -> tuple[Mount, ...]:
        """What the sandbox in which the tests run sees of this machine."""
        if spec.verifier.toolchain is None:
            return ()
        if self.toolchain is None:
            raise Refused("the tests need the toolchain, and this runner was given none")
        return (self.toolchain.mount(),)

    # -- solving ------------------------------------------------------------------------------

    def _solve(self, spec: TrialSpec, sandbox: Sandbox, record: _Record, work: Work | None) -> None:
        solver = spec.solver
        with record.phase("solver"):
            if solver.files:
                sandbox.write_files(solver.files, "/solution")
            if work is not None:
                result = work(sandbox)
            elif solver.command is None:
                return
            else:
                result = sandbox.exec(
                    ["bash", "-c", solver.command],
                    timeout_seconds=solver.timeout_seconds,
                    user=solver.user,
                    env=solver.env,
                    is_traced=spec.is_traced,
                )
        record.solver_exit_status = result.exit_status
        record.solver_output = _tail(result)
        record.solver_end = self._end_of(spec, result, sandbox.usage(), record)
        if spec.is_traced:
            record.trace = sandbox.trace()

    def _end_of(
        self, spec: TrialSpec, result: ExecResult, usage: Usage, record: _Record
    ) -> SolverEnd:
        struck = struck_limits(spec.limits, usage)
        for name in struck:
            record.note(f"the {name} limit struck while solving")
        if result.truncated:
            record.note("the solver's output was longer than is kept")
        if result.timed_out:
            return SolverEnd.TIMEOUT
        if "memory" in struck:
            return SolverEnd.OUT_OF_MEMORY
        return SolverEnd.QUOTA if struck else SolverEnd.DONE

    def _collect(self, spec: TrialSpec, sandbox: Sandbox, record: _Record) -> None:
        verifier = spec.verifier
        with record.phase("collect"):
            if verifier.is_separate:
                sandbox.kill_all()
            try:
                sources = [replace(source, has_folders=True) for source in verifier.artifacts]
                found = sandbox.read_files(sources, cap_bytes=verifier.artifact_cap_bytes)
                carried = (file for file in found if file.path not in _ALWAYS_THERE)
                record.state, shortcuts = without_shortcuts(carried)
                if shortcuts:
                    record.note(f"links to where tests or rewards lie were dropped: {shortcuts[0]}")
            except TooLarge as refused:
                # The solver's own doing, so no fault of the machinery: it delivers nothing.
                record.state = ()
                if not isinstance(refused, TooDeep):
                    record.solver_end = SolverEnd.QUOTA
                record.note(f"the artifacts were not carried over: {refused}")

    # -- judging ------------------------------------------------------------------------------

    def _judge_in_new_sandbox(
        self, spec: TrialSpec, image: Image, mounts: Sequence[Mount], record: _Record
    ) -> None:
        with self._sandbox(spec, image, mounts, record) as sandbox:
            with record.phase("verifier"):
                for source in spec.verifier.replaced_folders(record.state or ()):
                    sandbox.remove_tree(source)
                if record.state:
                    sandbox.write_files(_relative(record.state), "/")
            self._judge(spec, sandbox, image, record)

    def _judge(self, spec: TrialSpec, sandbox: Sandbox, image: Image, record: _Record) -> None:
        verifier = spec.verifier
        with record.phase("verifier"):
            if verifier.ends_solver:
                sandbox.kill_all()
            sandbox.remove_tree(_VERIFIER_LOGS)
            sandbox.write_files((), _VERIFIER_LOGS)
            if not verifier.has_tests_in_image:
                sandbox.remove_tree("/tests")
                sandbox.write_files(_executable(verifier.files), "/tests")
            if verifier.user is not None or image.user is not None:
                sandbox.exec(["chmod", "0777", _VERIFIER_LOGS], timeout_seconds=30, user="root")
            result = sandbox.exec(
                test_command(verifier.toolchain),
                timeout_seconds=verifier.timeout_seconds,
                user=verifier.user,
                env=(*verifier.env, *test_environment(verifier.toolchain)),
            )
            record.verifier_output = _tail(result)
            if result.timed_out:
                raise SandboxUnavailable(
                    f"the verifier did not end within {verifier.timeout_seconds:g} s: either its"
                    " tests hang or need longer, which is the bundle's fault, or this machine was"
                    " too busy; run it again alone, and if it stays, see what the tests wait for"
                )
            sandbox.kill_all()
            self._read_checks(spec, sandbox, record)
            record.rewards = self._read_rewards(sandbox, is_separate=verifier.is_separate)

    def _read_rewards(self, sandbox: Sandbox, *, is_separate: bool) -> Rewards:
        sources = (ArtifactSpec(REWARD_TEXT), ArtifactSpec(REWARD_JSON))
        try:
            files = sandbox.read_files(sources, cap_bytes=4 * REWARD_CAP_BYTES)
        except TooLarge:
            raise InvalidReward("a reward file is larger than 64 KiB") from None
        try:
            rewards = read_rewards(files)
        except InvalidReward as invalid:
            limit = cut_short_by(sandbox.usage())
            if not limit:
                raise
            raise InvalidReward(f"{invalid} (the {limit} limit struck)") from None
        # Tests that were cut short say nothing about the work. In a shared sandbox it is not known
        # whose doing it was: there the reward counts.
        if is_separate and not _is_full(rewards) and (limit := cut_short_by(sandbox.usage())):
            raise InvalidReward(f"the {limit} limit struck while the work was judged")
        return rewards

    def _read_checks(self, spec: TrialSpec, sandbox: Sandbox, record: _Record) -> None:
        use = spec.verifier.toolchain
        sources = [ArtifactSpec(CTRF)] + ([ArtifactSpec(NOTE)] if use else [])
        try:
            files = sandbox.read_files(sources, cap_bytes=CTRF_CAP_BYTES)
        except TooLarge:
            record.note("ctrf.json is larger than 4 MiB: no checks were read")
            return
        report = next((f for f in files if f.path == CTRF and f.link is None), None)
        if report is not None:
            record.checks, note = read_checks(report.data)
            record.note(note)
        if use is not None:
            said = next((f.data for f in files if f.path == NOTE and f.link is None), b"")
            if not spec.verifier.is_separate and says_no_pytest(said):
                said = self._without_forgery(use, said, sandbox, record)
            record.toolchain = described(use, said)
            record.note(f"tests were run by {record.toolchain}")

    @staticmethod
    def _without_forgery(
        use: ToolchainUse, note: bytes, sandbox: Sandbox, record: _Record
    ) -> bytes:
        """A note that no test could be run, unless the solver wrote it to be given no verdict."""
        if sandbox.exec(probe_command(use), timeout_seconds=30, user="root").exit_status:
            return note
        record.note("a note that pytest could not be run was not the toolchain's own")
        return b""


def _is_full(rewards: Rewards) -> bool:
    reward = TrialResult(Outcome.FAIL, rewards=rewards).reward
    return reward is not None and reward >= 1.0


def _executable(files: Sequence[SandboxFile]) -> list[SandboxFile]:
    return [replace(f, mode=f.mode | 0o111) if f.path == "test.sh" else f for f in files]


def _bytes_on_disk(files: Sequence[SandboxFile]) -> int:
    """At least what these files take, each in whole pages, with its folder."""
    return sum(-(-len(file.data) // 4096) * 4096 + 8192 for file in files)


def _relative(files: Sequence[SandboxFile]) -> list[SandboxFile]:
    return [replace(file, path=file.path.lstrip("/")) for file in files]


def _tail(result: ExecResult) -> bytes:
    """The last bytes of both streams; a short one leaves its share to the other."""
    half = OUTPUT_TAIL_BYTES // 2
    error = result.stderr[-max(half, OUTPUT_TAIL_BYTES - len(result.stdout)) :]
    return result.stdout[-(OUTPUT_TAIL_BYTES - len(error)) :] + error
