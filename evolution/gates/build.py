"""`build`: does the image build within its limit?"""

from __future__ import annotations

from evolution import execution
from evolution.bundle import BundleError
from evolution.contracts import Evidence, GateResult
from evolution.gates.answers import failed, inconclusive, last_lines, passed
from evolution.gates.case import Case
from evolution.ports import TrialRunner
from sandbox.contracts import Image, ImageSpec
from sandbox.errors import ImageBuildFailed, Refused, SandboxUnavailable

GATE = "build"
TRIES = 3


def check(case: Case, runner: TrialRunner) -> tuple[GateResult, tuple[Image, ...]]:
    """Build the solver's image, and the verifier's where it has its own; cached per digest.

    With the gate's answer, what was built.
    """
    images: list[Image] = []
    return _build(case, runner, images), tuple(images)


def _build(case: Case, runner: TrialRunner, images: list[Image]) -> GateResult:
    try:
        missing = execution.unsupported(case.bundle)
        if missing:
            return inconclusive(GATE, f"cannot be run here: {missing[0]}")
        specs = [("solver's image", execution.image_spec(case.bundle))]
        own = execution.verifier_spec(case.bundle).image
    except BundleError as error:
        return failed(GATE, str(error))
    if own is not None:
        specs.append(("verifier's image", own))
    evidence: list[Evidence] = []
    for label, spec in specs:
        try:
            image = _prepare(runner, spec)
        except ImageBuildFailed as error:
            log = last_lines(error.log.encode(), 20)
            evidence.append(Evidence(label=label, result=str(error), last_lines=log))
            return failed(GATE, f"the {label} does not build: {error}", evidence)
        except Refused as error:
            return inconclusive(GATE, f"the {label} cannot be built here: {error}", evidence)
        except SandboxUnavailable as error:
            return inconclusive(GATE, f"the sandbox gave no result: {error}", evidence)
        images.append(image)
        evidence.append(
            Evidence(label=label, result=f"built by {image.backend}, digest {image.digest[:12]}")
        )
    seconds = round(sum(image.build_seconds for image in images), 3)
    return passed(GATE, "the image builds", evidence, build_seconds=seconds)


def _prepare(runner: TrialRunner, spec: ImageSpec) -> Image:
    """Build, trying broken machinery again. Raises what the last try raised."""
    for _ in range(TRIES - 1):
        try:
            return runner.prepare(spec)
        except SandboxUnavailable:
            continue
    return runner.prepare(spec)
