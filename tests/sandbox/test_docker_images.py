"""Images of Docker: what they are built from, who waits for whom, and what is said of a failure."""

from __future__ import annotations

import secrets
import tarfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import docker as sdk
import pytest

from sandbox.backends.docker import DockerBackend
from sandbox.backends.docker_bases import base_images, needs_buildkit
from sandbox.backends.docker_images import REPOSITORY, check_name, context_of
from sandbox.contracts import ImageSpec, Limits, NetworkPolicy, SandboxFile
from sandbox.errors import ImageBuildFailed, Refused, SandboxUnavailable
from tests.sandbox.conformance import Bench, out
from tests.sandbox.room import room_for_four

BASE = "debian:bookworm-slim"


def spec_of(dockerfile: str, *files: SandboxFile, **fields: object) -> ImageSpec:
    """An image that nobody has built yet."""
    text = f"{dockerfile}\nLABEL new={secrets.token_hex(8)}\n"
    return ImageSpec((SandboxFile("Dockerfile", text.encode()), *files), **fields)  # type: ignore[arg-type]


# -- without an engine ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dockerfile", "bases"),
    [
        ("FROM a:1", ("a:1",)),
        (
            "FROM --platform=linux/amd64 a AS one\nFROM b@sha256:0 as two\nFROM one",
            ("a", "b@sha256:0"),
        ),
        ("ARG V=1\nARG N=a:${V}\nFROM $N", ("a:1",)),
        ("ARG V\nFROM a${V:+-}${V}", ("a",)),
        ("FROM scratch", ()),
        ("# FROM x\nFROM \\\n  a\nCOPY --from=b:2 /x /x\nCOPY --from=0 /y /y", ("a", "b:2")),
        ("FROM a AS build\nCOPY --from=build /x /x", ("a",)),
        ("\ufefffrom a", ("a",)),
    ],
)
def test_what_a_dockerfile_is_built_from(dockerfile: str, bases: tuple[str, ...]) -> None:
    assert base_images(dockerfile.encode()) == bases


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("RUN --mount=type=cache,target=/x true", "RUN --mount"),
        ("COPY --link a b", "COPY --link"),
        ("RUN <<EOF\ntrue\nEOF", "here-document"),
        ("RUN cat <<< x", ""),
        ("RUN echo $((1 << 2))", ""),
        ("COPY --chown=1:1 --from=a b c", ""),
    ],
)
def test_what_only_buildkit_can_do_is_known(line: str, what: str) -> None:
    found = needs_buildkit(f"FROM a\n{line}\n".encode())
    assert (what in found) if what else not found


def test_what_is_ignored_does_not_reach_the_builder() -> None:
    names = ("a.log", "b.txt", "d/c.log", "d/keep.log", "Dockerfile", ".dockerignore")
    rules = b"# a comment\n**/*.log\n!d/keep.log\nDockerfile\n.dockerignore\n"
    files = tuple(SandboxFile(n, rules if n == ".dockerignore" else b"x") for n in names)
    found = {file.path for file in context_of(ImageSpec(files))}
    assert found == {"b.txt", "d/keep.log", "Dockerfile", ".dockerignore"}


NO_NAMES = ("Debian:12", "../../etc", "débian", "a b", "a\nRUN touch /x", "-a", "a:", "", "a@b")


def test_names_of_images_are_told_from_what_is_none() -> None:
    for name in ("a", "a:1", "My.Host:5000/a/b__c:V1.2", "a@sha256:" + "0" * 64, "x/y-z.w"):
        check_name(name)
    for name in NO_NAMES:
        with pytest.raises(ImageBuildFailed, match="not a name") as failed:
            check_name(name)
        assert "\n" not in str(failed.value)


# -- with one ---------------------------------------------------------------------------------


@contextmanager
def backend_at(home: Path, **options: object) -> Iterator[DockerBackend]:
    """A back-end with a home of its own."""
    backend = DockerBackend(home / "run", home, places=room_for_four(home), **options)  # type: ignore[arg-type]
    try:
        yield backend
    finally:
        backend.close()


@pytest.mark.docker
@pytest.mark.parametrize("pull", [False, True])
def test_a_missing_base_image_is_named_and_is_not_the_bundles_fault(
    tmp_path: Path, pull: bool
) -> None:
    name = "ratchet.invalid/no-such-image:1"
    with backend_at(tmp_path, pull=pull) as backend:
        with pytest.raises(Refused, match=name) as refused:
            backend.prepare(spec_of(f"FROM {BASE} AS one\nFROM {name}"))
        with pytest.raises(Refused, match=name):
            backend.prepare(ImageSpec((), docker_image=name))
    assert "\n" not in str(refused.value)
    assert ("switched off" in str(refused.value)) is not pull


@pytest.mark.docker
def test_what_can_be_no_image_anywhere_is_the_bundles_fault(docker: DockerBackend) -> None:
    gone = SandboxFile("Dockerfile", link="/nowhere")
    bad = [ImageSpec((), docker_image=name) for name in NO_NAMES if name]
    for spec in (*bad, spec_of("FROM Debian:12"), ImageSpec((gone,))):
        with pytest.raises(ImageBuildFailed):
            docker.prepare(spec)


@pytest.mark.docker
def test_processes_and_threads_build_the_same_image_once(tmp_path: Path) -> None:
    spec = spec_of(f"FROM {BASE}\nRUN sleep 1; date +%N > /made")
    with backend_at(tmp_path) as one, backend_at(tmp_path) as two, ThreadPoolExecutor(4) as pool:
        images = list(pool.map(lambda b: b.prepare(spec), (one, two, one, two)))
    assert len({image.ref for image in images}) == 1
    assert sum(not image.was_cached for image in images) >= 1
    client = sdk.from_env()
    history = client.images.get(f"{REPOSITORY}:{spec.digest}").tags
    client.close()
    assert history == [f"{REPOSITORY}:{spec.digest}"]


@pytest.mark.docker
def test_a_failing_step_is_shown_with_the_end_of_its_log(docker: DockerBackend) -> None:
    step = "RUN for n in $(seq 300); do echo line $n; done; echo the reason >&2; exit 3"
    with pytest.raises(ImageBuildFailed, match="Step") as failed:
        docker.prepare(spec_of(f"FROM {BASE}\n{step}"))
    assert "the reason" in failed.value.log
    assert "line 1\n" not in failed.value.log
    assert "\n" not in str(failed.value)


@pytest.mark.docker
def test_a_build_that_does_not_end_is_ended(docker: DockerBackend) -> None:
    spec = spec_of(f"FROM {BASE}\nRUN sleep 977", build_timeout_seconds=4.0)
    with pytest.raises(ImageBuildFailed, match="within 4 s"):
        docker.prepare(spec)


@pytest.mark.docker
def test_a_prebuilt_image_gets_the_files_in_its_working_folder(
    docker: DockerBackend, docker_bench: Bench
) -> None:
    base = docker.prepare(spec_of(f'FROM {BASE}\nWORKDIR "/the work"\nENV A="b c"\nUSER nobody'))
    name = f"{REPOSITORY}:{base.digest}"
    files = (SandboxFile("in/x", b"1"), SandboxFile(".dockerignore", b"in\n"))
    with docker_bench.start(spec=ImageSpec(files, docker_image=name)) as sandbox:
        assert out(sandbox, "pwd; cat in/x; echo $A; id -un") == "/the work\n1b c\nnobody\n"
    elsewhere = ImageSpec(files, docker_image=name, workdir="/srv/x y", env=(("A", "d"),))
    with docker_bench.start(spec=elsewhere) as sandbox:
        assert out(sandbox, "pwd; cat in/x; echo $A") == "/srv/x y\n1d\n"


@pytest.mark.docker
def test_an_image_without_a_shell_is_refused(docker: DockerBackend) -> None:
    image = docker.prepare(spec_of("FROM scratch\nCOPY x /x", SandboxFile("x", b"1")))
    with pytest.raises(Refused, match="bash"):
        docker.start(image, Limits(), NetworkPolicy())


@pytest.mark.docker
def test_an_image_that_was_removed_is_built_again(docker: DockerBackend) -> None:
    spec = spec_of(f"FROM {BASE}")
    image = docker.prepare(spec)
    client = sdk.from_env()
    client.images.remove(image.ref, force=True)
    client.close()
    with pytest.raises(SandboxUnavailable):
        docker.start(image, Limits(), NetworkPolicy())
    again = docker.prepare(spec)
    docker.start(again, Limits(), NetworkPolicy()).stop()
    assert not again.was_cached


@pytest.mark.docker
def test_an_exported_image_is_its_whole_root(docker: DockerBackend) -> None:
    image = docker.prepare(spec_of(f"FROM {BASE}\nCOPY x /srv/x", SandboxFile("x", b"mine")))
    with (
        docker.export(image) as stream,
        tarfile.open(fileobj=stream, mode="r|") as tar,
    ):
        wanted = ("srv/x", "etc/debian_version")
        files = ((m.name, tar.extractfile(m)) for m in tar if m.name in wanted)
        found = {name: file.read() for name, file in files if file is not None}
    assert found["srv/x"] == b"mine"
    assert found["etc/debian_version"].startswith(b"12")


@pytest.mark.docker
def test_an_absent_engine_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="does not answer") as absent:
        DockerBackend(tmp_path, tmp_path, url=f"unix://{tmp_path}/nothing")
    assert "\n" not in str(absent.value)


@pytest.mark.docker
def test_starting_and_stopping_from_many_threads_leaves_nothing(
    docker: DockerBackend, docker_bench: Bench
) -> None:
    barrier = threading.Barrier(4)

    def visit(number: int) -> str:
        barrier.wait(60)
        with docker_bench.start() as sandbox:
            return out(sandbox, f"echo {number}")

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(visit, range(4))) == [f"{n}\n" for n in range(4)]
    owner = docker.labels["ratchet.owner"]
    assert docker.engine.api.containers(all=True, filters={"label": f"ratchet.owner={owner}"}) == []
