"""How a bundle is run: Harbor's defaults and precedence, in the sandbox's words."""

from __future__ import annotations

import pytest

from evolution.bundle import Bundle, BundleError
from evolution.execution import (
    image_spec,
    limits,
    network,
    nop,
    oracle,
    resolved_env,
    solution_solver,
    trial_spec,
    verifier_spec,
    workdir_of,
)
from sandbox.contracts import (
    ArtifactSpec,
    Limits,
    NetworkMode,
    NetworkPolicy,
    SandboxFile,
)
from tests.evolution.sample_bundles import TASK_TOML, sample_bundle

MIB = 1024 * 1024


def _toml(*changes: tuple[str, str]) -> Bundle:
    text = TASK_TOML
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return sample_bundle(task_toml=text)


def test_a_trial_of_a_plain_bundle() -> None:
    bundle = sample_bundle()
    spec = trial_spec(bundle, oracle(bundle), is_traced=True, keep_state=True)
    assert spec.image.is_host_root_compatible
    assert [file.path for file in spec.image.files] == ["Dockerfile", "data/in.txt"]
    assert spec.limits == Limits(cpus=1.0, memory_bytes=512 * MIB)
    assert spec.network == NetworkPolicy(NetworkMode.NO_NETWORK)
    assert spec.solver.command == "/solution/solve.sh"
    assert spec.solver.timeout_seconds == 60.0
    assert dict(spec.solver.env) == {"DEBIAN_FRONTEND": "noninteractive"}
    assert spec.verifier.is_separate
    assert spec.verifier.image is None
    assert spec.verifier.timeout_seconds == 30.0
    assert spec.verifier.artifacts == (ArtifactSpec("/logs/artifacts"), ArtifactSpec("/app/out"))
    assert (spec.is_traced, spec.keep_state) == (True, True)


def test_harbors_defaults_where_nothing_is_said() -> None:
    bundle = sample_bundle(task_toml="")
    assert network(bundle).mode is NetworkMode.PUBLIC
    assert limits(bundle) == Limits()
    verifier = verifier_spec(bundle, cap_seconds=10_000)
    assert not verifier.is_separate
    assert verifier.artifacts == ()
    assert verifier.timeout_seconds == 600.0
    assert oracle(bundle, cap_seconds=33).timeout_seconds == 33
    assert not image_spec(bundle).is_host_root_compatible


def test_time_outs_are_capped() -> None:
    bundle = sample_bundle()
    assert oracle(bundle, cap_seconds=5).timeout_seconds == 5
    assert nop(bundle, cap_seconds=5).timeout_seconds == 5
    assert verifier_spec(bundle, cap_seconds=5).timeout_seconds == 5


def test_scripts_are_made_executable_and_ignored_files_stay_behind() -> None:
    bundle = sample_bundle(
        SandboxFile("solution/solve.sh", b"#!/bin/sh\n", 0o644),
        SandboxFile("tests/test.sh", b"#!/bin/sh\n", 0o600),
        SandboxFile("solution/draft.txt"),
        SandboxFile("solution/.harborignore", b"draft.txt"),
    )
    assert oracle(bundle).files == (SandboxFile("solve.sh", b"#!/bin/sh\n", 0o755),)
    assert verifier_spec(bundle).files == (SandboxFile("test.sh", b"#!/bin/sh\n", 0o711),)


def test_another_solution_is_run_the_way_the_oracle_is() -> None:
    bundle = _toml(("[agent]", '[solution]\nenv = {A = "1"}\n[agent]\nuser = 1000'))
    files = (SandboxFile("solve.sh", b"x", 0o644),)
    solver = solution_solver(bundle, "naive", files)
    assert solver.name == "naive"
    assert solver.files[0].mode == 0o755
    assert solver.user == "1000"
    assert dict(solver.env)["A"] == "1"


def test_nop_does_nothing() -> None:
    solver = nop(sample_bundle())
    assert (solver.command, solver.files) == (None, ())


def test_a_verifier_with_an_image_of_its_own_brings_its_tests() -> None:
    separate = 'environment_mode = "separate"'
    own = _toml((separate, '[verifier.environment]\ndocker_image = "judge:1"'))
    spec = verifier_spec(own)
    assert spec.is_separate
    assert spec.files == ()
    assert spec.image is not None
    assert spec.image.docker_image == "judge:1"

    built = sample_bundle(SandboxFile("tests/Dockerfile", b"FROM x\nCOPY . /tests\n"))
    spec = verifier_spec(built)
    assert spec.files == ()
    assert spec.image is not None
    assert "Dockerfile" in {file.path for file in spec.image.files}


def test_a_verifier_environment_without_an_image_is_the_solvers_image_with_its_own_settings() -> (
    None
):
    changed = _toml(('environment_mode = "separate"', '[verifier.environment]\nworkdir = "/judge"'))
    spec = verifier_spec(changed)
    assert [file.path for file in spec.files] == ["test.sh"]
    assert spec.image is not None
    assert spec.image.workdir == "/judge"
    assert spec.image.files == image_spec(changed).files


def test_artifacts_are_strings_or_tables_and_relative_to_the_working_folder() -> None:
    table = '[{source = "out", exclude = ["*.tmp"]}, "/logs/artifacts/"]'
    bundle = _toml(('["/app/out"]', table))
    assert workdir_of(bundle) == "/app"
    assert verifier_spec(bundle).artifacts == (
        ArtifactSpec("/app/out", ("*.tmp",)),
        ArtifactSpec("/logs/artifacts"),
    )


@pytest.mark.parametrize(
    ("dockerfile", "workdir"),
    [("FROM x", "/"), ("FROM x\nWORKDIR /a\nworkdir b/c", "/a/b/c"), ('WORKDIR "/q"', "/q")],
)
def test_the_working_folder_is_read_from_the_dockerfile(dockerfile: str, workdir: str) -> None:
    bundle = sample_bundle(SandboxFile("environment/Dockerfile", dockerfile.encode()))
    assert workdir_of(bundle) == workdir


def test_the_hosts_environment_never_reaches_a_template(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_KEY", "canary")
    assert resolved_env([("A", "${SECRET_KEY:-none}"), ("B", "x")]) == (("A", "none"), ("B", "x"))
    assert resolved_env([("A", "${X}")], {"X": "given"}) == (("A", "given"),)
    with pytest.raises(BundleError, match="SECRET_KEY"):
        resolved_env([("A", "${SECRET_KEY}")])


def test_what_is_missing_is_named() -> None:
    with pytest.raises(BundleError, match=r"solution/solve\.sh: missing"):
        oracle(sample_bundle(without=("solution/solve.sh",)))
    with pytest.raises(BundleError, match=r"tests/test\.sh: missing"):
        verifier_spec(sample_bundle(without=("tests/test.sh",)))


def test_what_cannot_be_run_here_is_refused_by_name() -> None:
    bundle = sample_bundle(SandboxFile("environment/docker-compose.yaml", b""))
    with pytest.raises(BundleError, match="compose"):
        trial_spec(bundle, nop(bundle))
