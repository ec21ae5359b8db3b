"""Which back-end a trial is given, and that nothing of the others is touched."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sandbox.backends.fake import FakeBackend, FakeCommand
from sandbox.base import Sandbox
from sandbox.choice import ELSEWHERE, ChoosingRunner, SandboxChoice, can_start, is_followed
from sandbox.contracts import (
    Image,
    ImageSpec,
    Limits,
    NetworkMode,
    NetworkPolicy,
    Outcome,
    SandboxFile,
    SolverSpec,
    Trace,
    TrialSpec,
    VerifierSpec,
)
from sandbox.errors import Refused, SandboxUnavailable

DOCKERFILE = SandboxFile("Dockerfile", b"FROM scratch\n")
OWN = ImageSpec((DOCKERFILE,))
HOST = ImageSpec((DOCKERFILE,), is_host_root_compatible=True)
PUBLIC = NetworkPolicy(NetworkMode.PUBLIC)
OFFLINE = NetworkPolicy(NetworkMode.NO_NETWORK)
BACKENDS = [choice for choice in SandboxChoice if choice is not SandboxChoice.AUTO]


class Fussy(FakeBackend):
    """A fake that refuses images as the real one of its name does."""

    def __init__(self, choice: SandboxChoice, house: House, script: list[FakeCommand]) -> None:
        super().__init__(script)
        self.name = choice.value
        self.house = house

    def prepare(self, spec: ImageSpec) -> Image:
        if self.name == "bubblewrap" and b"FROM b" in spec.files[0].data:
            raise Refused("several stages need Docker")
        if self.name == "bubblewrap-image" and not self.house.has_engine:
            raise Refused("the image has to be unpacked")
        return super().prepare(replace(spec, files=(DOCKERFILE,)))

    def check_room(self, limits: Limits) -> None:
        if self.name != "docker" and (limits.disk_bytes or 0) > 1000:
            raise Refused("the disk is memory here")

    def start(self, image: Image, limits: Limits, network: NetworkPolicy, **more: Any) -> Sandbox:
        return super().start(image, limits, OFFLINE, **more)  # a fake refuses any other


class House:
    """Fake back-ends under the real names; `made` lists those that were asked for."""

    def __init__(
        self,
        *,
        has_engine: bool = True,
        has_bubblewrap: bool = True,
        traces: dict[str, Trace] | None = None,
    ) -> None:
        self.made: list[str] = []
        self.traces = traces or {}
        self.has_engine = has_engine
        self.has_bubblewrap = has_bubblewrap

    def make(self, choice: SandboxChoice) -> FakeBackend:
        if choice is SandboxChoice.DOCKER and not self.has_engine:
            raise SandboxUnavailable("no engine answers")
        self.made.append(choice.value)
        trace = self.traces.get(choice, Trace(is_complete=False, note="cannot follow"))
        zero = SandboxFile("/logs/verifier/reward.txt", b"0")
        judging = FakeCommand(expects="/tests/test.sh", writes=(zero,))
        return Fussy(choice, self, [FakeCommand(expects="x", trace=trace), judging])

    def runner(self, choice: SandboxChoice = SandboxChoice.AUTO) -> ChoosingRunner:
        return ChoosingRunner(
            {each: lambda each=each: self.make(each) for each in BACKENDS},
            has_engine=lambda: self.has_engine,
            can_bubblewrap=lambda: self.has_bubblewrap,
            choice=choice,
        )


def trial(image: ImageSpec, network: NetworkPolicy, judge: ImageSpec | None = None) -> TrialSpec:
    test = SandboxFile("test.sh", b"", 0o755)
    verifier = VerifierSpec((test,), image=judge)
    return TrialSpec(image, SolverSpec("nop", command="x"), verifier, network=network)


@pytest.mark.parametrize(
    ("image", "network", "has_engine", "has_bubblewrap", "expected"),
    [
        (HOST, OFFLINE, True, True, "bubblewrap"),
        (HOST, OFFLINE, False, True, "bubblewrap"),
        (HOST, OFFLINE, True, False, "docker"),
        (HOST, OFFLINE, False, False, "bubblewrap"),  # and it says itself what is missing
        (HOST, PUBLIC, True, True, "docker"),
        (OWN, OFFLINE, True, True, "bubblewrap-image"),
        (OWN, OFFLINE, True, False, "docker"),
        (OWN, PUBLIC, True, True, "docker"),
    ],
)
def test_auto_takes_the_first_that_fits_and_touches_no_other(
    image: ImageSpec, network: NetworkPolicy, has_engine: bool, has_bubblewrap: bool, expected: str
) -> None:
    house = House(has_engine=has_engine, has_bubblewrap=has_bubblewrap)
    assert house.runner().backend_for([image], network).name == expected
    assert house.made == [expected]


@pytest.mark.parametrize(
    ("network", "what"), [(OFFLINE, "the image has to be unpacked"), (PUBLIC, "'public'")]
)
def test_what_nobody_can_run_is_refused_by_name_with_the_way_out(
    network: NetworkPolicy, what: str
) -> None:
    runner = House(has_engine=False).runner()
    with pytest.raises(Refused, match=what) as refused:
        runner.backend_for([OWN], network)
    assert "DOCKER_HOST" in str(refused.value)
    result = runner.run(trial(OWN, network))
    assert result.outcome is Outcome.INFRA_ERROR
    assert result.error == str(refused.value)
    assert result.backend == ""


def test_what_one_refuses_is_put_to_the_next() -> None:
    staged = ImageSpec(
        (SandboxFile("Dockerfile", b"FROM a\nFROM b\n"),), is_host_root_compatible=True
    )
    assert House().runner().backend_for([staged], OFFLINE).name == "bubblewrap-image"
    with pytest.raises(Refused, match="several stages need Docker; the image has to be unpacked"):
        House(has_engine=False).runner().backend_for([staged], OFFLINE)


def test_an_image_is_built_by_the_engine_before_anybody_unpacks_it() -> None:
    house = House()
    assert house.runner().prepare(OWN).backend == "docker"
    assert house.runner().prepare(HOST).backend == "bubblewrap"
    assert house.made == ["docker", "bubblewrap"]


def test_a_verifier_with_an_image_of_its_own_is_run_where_the_solver_is() -> None:
    house = House()
    result = house.runner().run(trial(HOST, OFFLINE, judge=OWN))
    assert result.backend == "bubblewrap-image"
    assert house.made == ["bubblewrap-image"]


@pytest.mark.parametrize("choice", BACKENDS)
def test_a_named_one_is_taken_whatever_else_would_fit(choice: SandboxChoice) -> None:
    house = House(has_bubblewrap=False)
    runner = house.runner(choice)
    assert runner.run(trial(HOST, OFFLINE)).backend == choice
    assert runner.prepare(OWN).backend == choice
    assert house.made == [choice.value] * 2


def test_an_engine_that_is_away_is_no_reward_of_zero() -> None:
    result = House(has_engine=False).runner(SandboxChoice.DOCKER).run(trial(OWN, OFFLINE))
    assert (result.outcome, result.reward) == (Outcome.INFRA_ERROR, None)
    assert (result.error, result.backend) == ("no engine answers", "docker")


def test_what_docker_cannot_follow_is_followed_by_another_run() -> None:
    house = House(traces={"bubblewrap-image": Trace(read=("/app/in",))})
    spec = replace(trial(OWN, OFFLINE), is_traced=True)
    result = house.runner(SandboxChoice.DOCKER).run(spec)
    assert (result.backend, result.sandboxes) == ("docker", 2)
    assert result.trace == Trace(read=("/app/in",), note=ELSEWHERE)
    assert house.made == ["docker", "bubblewrap-image"]
    assert not is_followed(result)
    own = house.runner(SandboxChoice.BUBBLEWRAP_IMAGE).run(spec)
    assert own.trace == Trace(read=("/app/in",))
    assert is_followed(own)


@pytest.mark.parametrize(
    ("network", "has_bubblewrap"), [(PUBLIC, True), (OFFLINE, False)], ids=["public", "without"]
)
def test_what_nobody_can_follow_stays_as_it_is(
    network: NetworkPolicy, has_bubblewrap: bool
) -> None:
    house = House(has_bubblewrap=has_bubblewrap)
    spec = replace(trial(OWN, network), is_traced=True)
    result = house.runner(SandboxChoice.DOCKER).run(spec)
    assert result.outcome is Outcome.FAIL
    assert result.trace is not None
    assert result.trace.is_blind
    assert house.made == ["docker"]


def test_a_back_end_starts_when_it_ran_a_command() -> None:
    assert can_start(FakeBackend([FakeCommand(expects="true")]))
    assert not can_start(FakeBackend([FakeCommand(expects="true", exit_status=1)]))
    assert not can_start(FakeBackend([FakeCommand(expects="true", error="it is gone")]))


def test_a_disk_that_memory_has_no_room_for_is_put_to_docker() -> None:
    large = Limits(disk_bytes=2000)
    assert House().runner().backend_for([HOST], OFFLINE, large).name == "docker"
    with pytest.raises(Refused, match="the disk is memory here"):
        House(has_engine=False).runner().backend_for([HOST], OFFLINE, large)
