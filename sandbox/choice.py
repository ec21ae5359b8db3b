"""Which of the three ways to run a sandbox a trial takes: a named one, or the first that fits.

    runner = ChoosingRunner({SandboxChoice.DOCKER: DockerBackend, ...}, has_images=engine_answers)
    result = runner.run(spec)

Nothing of a back-end is touched before a trial needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from enum import StrEnum
from typing import IO, Protocol, runtime_checkable

from sandbox.base import AttemptRunner, Backend, ImageSource, Sandbox, TrialRunner, Work
from sandbox.contracts import (
    Image,
    ImageSpec,
    Limits,
    NetworkMode,
    NetworkPolicy,
    Outcome,
    SandboxFile,
    TrialResult,
    TrialSpec,
)
from sandbox.errors import Refused, SandboxError
from sandbox.trial import Runner


class SandboxChoice(StrEnum):
    """How sandboxes are chosen. All but AUTO are the names of back-ends."""

    AUTO = "auto"
    BUBBLEWRAP = "bubblewrap"
    BUBBLEWRAP_IMAGE = "bubblewrap-image"
    DOCKER = "docker"


HOST_ROOT = SandboxChoice.BUBBLEWRAP.value
"""The back-end that runs on this machine's own `/usr`, not on the environment's image."""

ELSEWHERE = "followed in another run, by bubblewrap on the unpacked image"
"""The note of a trace that is not of the trial's own run."""

NO_ENGINE = "no Docker engine answers: start one, or set DOCKER_HOST"

_NO_NETWORK = NetworkPolicy(NetworkMode.NO_NETWORK)
_NO_LIMITS = Limits()


@runtime_checkable
class KnowsRoom(Protocol):
    """A back-end that can tell beforehand whether a sandbox can ever have what it may use."""

    def check_room(self, limits: Limits) -> None:
        """Raises Refused when this machine does not have that much."""
        ...


class ChoosingRunner:
    """Runs each trial on the back-end that suits it; implements `TrialRunner`.

    `backends` give the process's back-ends, each when it is first needed. `has_engine` says whether
    a Docker engine answers, `can_bubblewrap` whether bubblewrap starts (see `can_start`); only AUTO
    asks. `runner_for` makes the runner of a back-end. A verifier with an image of its own is run
    where the solver is.

    What is to be traced and was not, since Docker cannot, is run once more by bubblewrap on the
    unpacked image, for the trace alone.

    AUTO takes bubblewrap for what may run on the host's root without a network, bubblewrap on the
    unpacked image for all else without a network, and Docker for the rest: what the one refuses is
    put to the next.
    """

    def __init__(
        self,
        backends: Mapping[SandboxChoice, Callable[[], Backend]],
        *,
        has_engine: Callable[[], bool],
        can_bubblewrap: Callable[[], bool],
        choice: SandboxChoice = SandboxChoice.AUTO,
        runner_for: Callable[[Backend], TrialRunner] = Runner,
    ) -> None:
        self.choice = choice
        self._backends = backends
        self._has_engine = has_engine
        self._can_bubblewrap = can_bubblewrap
        self._runner_for = runner_for

    def run(self, spec: TrialSpec) -> TrialResult:
        """See `TrialRunner.run`."""
        try:
            backend = self._backend_of(spec)
        except (SandboxError, OSError) as error:
            return self._not_run(spec, error)
        result = self._runner_for(backend).run(spec)
        return self._followed(spec, result) if spec.is_traced else result

    def attempt(self, spec: TrialSpec, work: Work) -> TrialResult:
        """See `AttemptRunner.attempt`."""
        try:
            runner = self._runner_for(self._backend_of(spec))
            if not isinstance(runner, AttemptRunner):
                raise Refused("this runner lets nobody work from outside")
        except (SandboxError, OSError) as error:
            return self._not_run(spec, error)
        return runner.attempt(spec, work)

    def open(self, spec: ImageSpec, limits: Limits, *, party: str = "") -> Sandbox:
        """A fresh sandbox of an image without network, for whoever stops it.

        Raises Refused, ImageBuildFailed or SandboxUnavailable.
        """
        backend = self.backend_for([spec], _NO_NETWORK, limits)
        return backend.start(backend.prepare(spec), limits, _NO_NETWORK, party=party)

    def _backend_of(self, spec: TrialSpec) -> Backend:
        images = [spec.image]
        if spec.verifier.is_separate and spec.verifier.image is not None:
            images.append(spec.verifier.image)
        return self.backend_for(images, spec.network, spec.limits)

    def _not_run(self, spec: TrialSpec, error: Exception) -> TrialResult:
        return TrialResult(
            Outcome.INFRA_ERROR,
            error=str(error).replace("\n", " ")[:1000],
            image_digest=spec.image.digest,
            backend="" if self.choice is SandboxChoice.AUTO else self.choice.value,
        )

    def _followed(self, spec: TrialSpec, result: TrialResult) -> TrialResult:
        """The result with a trace, from another run where the back-end can follow nothing.

        The verdict, the state and the usage stay those of the back-end that was asked for.
        """
        is_graded = result.outcome in (Outcome.PASS, Outcome.FAIL)
        is_offline = spec.network.mode is NetworkMode.NO_NETWORK
        if not is_graded or is_followed(result) or not is_offline or not self._can_bubblewrap():
            return result
        try:
            backend = self._backends[SandboxChoice.BUBBLEWRAP_IMAGE]()
        except (SandboxError, OSError):
            return result
        other = self._runner_for(backend).run(spec)
        if other.trace is None or other.trace.is_blind:
            return result
        return replace(result, trace=replace(other.trace, note=ELSEWHERE))

    def prepare(self, spec: ImageSpec) -> Image:
        """See `TrialRunner.prepare`. AUTO leaves the unpacking to the first trial that needs it."""
        is_on_engine = not spec.is_host_root_compatible and self.choice is SandboxChoice.AUTO
        if is_on_engine and self._has_engine():
            return self._backends[SandboxChoice.DOCKER]().prepare(spec)
        return self.backend_for([spec], _NO_NETWORK).prepare(spec)

    def backend_for(
        self, images: Sequence[ImageSpec], network: NetworkPolicy, limits: Limits = _NO_LIMITS
    ) -> Backend:
        """The back-end for sandboxes of these images.

        Raises Refused when there is none, ImageBuildFailed or SandboxUnavailable.
        """
        if self.choice is not SandboxChoice.AUTO:
            return self._backends[self.choice]()
        is_offline = network.mode is NetworkMode.NO_NETWORK
        is_on_host = is_offline and all(image.is_host_root_compatible for image in images)
        refusals: list[str] = []
        if is_offline and self._can_bubblewrap():
            first = (SandboxChoice.BUBBLEWRAP,) if is_on_host else ()
            for choice in (*first, SandboxChoice.BUBBLEWRAP_IMAGE):
                backend = self._backends[choice]()
                try:
                    if isinstance(backend, KnowsRoom):
                        backend.check_room(limits)
                    for image in images:
                        backend.prepare(image)
                except Refused as refused:
                    refusals.append(str(refused))
                else:
                    return backend
        if self._has_engine():
            return self._backends[SandboxChoice.DOCKER]()
        if is_on_host and not refusals:
            return self._backends[SandboxChoice.BUBBLEWRAP]()  # which says itself what is missing
        what = f"network_mode = {network.mode.value!r} is not offered without Docker"
        if is_offline:
            what = "; ".join(refusals) or "bubblewrap does not start here"
        raise Refused(what if NO_ENGINE in what else f"{what}, and {NO_ENGINE}")


def is_followed(result: TrialResult) -> bool:
    """Whether a trial's own run was traced, and so took longer than it would have."""
    trace = result.trace
    return trace is not None and not trace.is_blind and trace.note != ELSEWHERE


class LateImages:
    """Images of an engine that is asked only when one is needed; implements `ImageSource`."""

    def __init__(self, has_engine: Callable[[], bool], source: Callable[[], ImageSource]) -> None:
        self._has_engine = has_engine
        self._source = source

    def prepare(self, spec: ImageSpec) -> Image:
        """See `ImageSource.prepare`. Raises Refused when no engine answers."""
        if not self._has_engine():
            raise Refused(f"this environment brings its own image, and {NO_ENGINE}")
        return self._source().prepare(spec)

    def export(self, image: Image) -> AbstractContextManager[IO[bytes]]:
        """See `ImageSource.export`."""
        return self._source().export(image)


def can_start(backend: Backend) -> bool:
    """Whether a back-end runs a command here, on the host's own root."""
    dockerfile = SandboxFile("Dockerfile", b"FROM scratch\n")
    try:
        image = backend.prepare(ImageSpec((dockerfile,), is_host_root_compatible=True))
        with backend.start(image, Limits(), _NO_NETWORK) as sandbox:
            return sandbox.exec(["true"], timeout_seconds=30.0).exit_status == 0
    except (SandboxError, OSError):
        return False
