"""Images are built from the documented subset, once, and layer upon layer."""

from __future__ import annotations

import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sandbox.backends import host_root
from sandbox.backends.bubblewrap import BubblewrapBackend
from sandbox.contracts import ImageSpec, Limits, NetworkPolicy, SandboxFile
from sandbox.errors import ImageBuildFailed, Refused
from tests.sandbox.conformance import Bench, image_spec, out, sh

pytestmark = pytest.mark.bubblewrap


def _built(backend: BubblewrapBackend, text: str, command: str, *files: SandboxFile) -> str:
    image = backend.prepare(image_spec(text.encode(), *files))
    with backend.start(image, Limits(), NetworkPolicy()) as sandbox:
        return out(sandbox, command)


def test_every_supported_instruction(bubblewrap: BubblewrapBackend) -> None:
    text = """# syntax=docker/dockerfile:1
ARG BASE=bookworm-slim
FROM debian:$BASE
LABEL a=b
ARG NAME=world
ENV GREETING="hello $NAME" PATH=/opt/bin:$PATH
SHELL ["/bin/bash", "-eu", "-c"]
WORKDIR /srv
WORKDIR deep/er
COPY data/one.txt ./copy.txt
COPY data /srv/tree/
ADD data/*.sh /opt/bin/
COPY data/one.txt data/run.sh many/
COPY --chmod=640 data/one.txt /srv/secret
RUN set -o pipefail; echo "$GREETING $NAME" | tr a-z A-Z > out.txt && [[ -f out.txt ]]
RUN ["/bin/sh", "-c", "pwd > cwd.txt"]
RUN <<EOF
echo one > here.txt
echo two >> here.txt
EOF
COPY <<'EOF' /srv/inline
$GREETING
EOF
RUN rm /srv/tree/one.txt
CMD ["sleep"]
"""
    found = _built(
        bubblewrap,
        text,
        "cat out.txt cwd.txt here.txt /srv/inline copy.txt; ls /srv/tree /opt/bin many;"
        "stat -c %a /srv/secret /opt/bin/run.sh; echo $GREETING $PATH; pwd",
    )
    assert found == (
        "HELLO WORLD WORLD\n/srv/deep/er\none\ntwo\n$GREETING\none\n"
        "/opt/bin:\nrun.sh\n\n/srv/tree:\nrun.sh\n\nmany:\none.txt\nrun.sh\n640\n755\n"
        "hello world /opt/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
        "/srv/deep/er\n"
    )


def test_copying_one_file_goes_into_a_folder_that_is_there(bubblewrap: BubblewrapBackend) -> None:
    text = "FROM a\nWORKDIR /app\nCOPY data/one.txt /app\nCOPY data/one.txt /app/two\nCOPY . all\n"
    assert _built(bubblewrap, text, "ls /app /app/all") == (
        "/app:\nall\none.txt\ntwo\n\n/app/all:\nDockerfile\ndata\n"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("FROM a\nCOPY nothing /x\n", "not in environment/"),
        ("FROM a\nCOPY ../data /x\n", "not in environment/"),
        ("FROM a\nRUN echo why >&2; exit 4\n", "exit status 4"),
        ("FROM a\nRUN sleep 30\n", "time was over"),
        ("FROM a\nRUN echo > /usr/bin/x\n", "exit status"),
    ],
)
def test_a_build_that_fails_says_where(
    bubblewrap: BubblewrapBackend, text: str, reason: str
) -> None:
    spec = image_spec(text.encode())
    spec = ImageSpec(spec.files, is_host_root_compatible=True, build_timeout_seconds=1.0)
    with pytest.raises(ImageBuildFailed, match=reason) as caught:
        bubblewrap.prepare(spec)
    assert "line 2" in str(caught.value)
    assert ("why" in caught.value.log) == ("why" in text)


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (ImageSpec(image_spec().files), "host_root"),
        (ImageSpec((), docker_image="x:1", is_host_root_compatible=True), "x:1"),
        (image_spec(b"FROM a\n", SandboxFile("docker-compose.yaml", b"")), "compose"),
        (image_spec(b"FROM a\nADD https://x/y /z\n"), "network"),
        (image_spec(b"FROM a\nADD a.tar.gz /z\n", SandboxFile("a.tar.gz", b"")), "archive"),
        (image_spec(b"FROM a\nRUN apt-get install -y no-such-thing\n"), "no-such-thing"),
        (image_spec(b"FROM a\nRUN apt-get install -y python3=3.1\n"), "fixed version"),
    ],
)
def test_what_needs_docker_is_refused(
    bubblewrap: BubblewrapBackend, spec: ImageSpec, reason: str
) -> None:
    with pytest.raises(Refused, match=reason) as caught:
        bubblewrap.prepare(spec)
    assert "Docker" in str(caught.value)


def test_steps_that_a_parent_has_built_are_not_built_again(bubblewrap: BubblewrapBackend) -> None:
    parent = (
        f"FROM a\nENV AT={time.time_ns()}\nRUN date +%N > /built; mkdir /gone; echo > /gone/x\n"
    )
    child = parent + "RUN rm -r /gone; echo more > /more\n"
    first = _built(bubblewrap, parent, "cat /built")
    assert _built(bubblewrap, child, "cat /built /more; ls -d /gone || echo gone") == (
        f"{first}more\ngone\n"
    )
    again = parent + "RUN mkdir /gone2 && rm -r /gone && mkdir /gone && echo y > /gone/y\n"
    assert _built(bubblewrap, again, "cat /built; ls /gone") == f"{first}y\n"


def test_a_changed_input_is_built_anew(bubblewrap: BubblewrapBackend) -> None:
    text = f"FROM a\nENV AT={time.time_ns()}\nCOPY data /d\nRUN cat /d/x > /seen\n"
    one = _built(bubblewrap, text, "cat /seen", SandboxFile("data/x", b"1\n"))
    two = _built(bubblewrap, text, "cat /seen", SandboxFile("data/x", b"2\n"))
    assert (one, two) == ("1\n", "2\n")


def test_many_who_want_the_same_image_build_it_once(bubblewrap: BubblewrapBackend) -> None:
    spec = image_spec(f"FROM a\nENV AT={time.time_ns()}\nRUN sleep 0.3\n".encode())
    with ThreadPoolExecutor(4) as pool:
        images = list(pool.map(lambda _n: bubblewrap.prepare(spec), range(4)))
    assert len({image.ref for image in images}) == 1
    assert [image.was_cached for image in images].count(False) == 1


def test_owners_survive_in_an_image(bubblewrap: BubblewrapBackend) -> None:
    text = "FROM a\nRUN chown 1000:1000 /srv\nUSER nobody\nWORKDIR /tmp\n"
    if os.geteuid() != 0:
        with pytest.raises(Refused, match="user ids"):
            _built(bubblewrap, text, "true")
        return
    assert _built(bubblewrap, text, "id -un; stat -c %u /srv; touch /srv/x || echo denied") == (
        "nobody\n1000\ndenied\n"
    )


def test_without_a_python_of_the_host_the_running_one_is_mounted(tmp_path: Path) -> None:
    backend = BubblewrapBackend(
        tmp_path / "r", tmp_path / "c", python_prefix=host_root.running_prefix()
    )
    try:
        program = "import sys, json, hashlib; print(sys.prefix, sys.version_info[1])"
        text = "FROM a\nRUN apt-get install -y python3\n"
        found = _built(backend, text, f"python3 -I -c '{program}'")
    finally:
        backend.close()
    assert found == f"{host_root.PYTHON_AT} {sys.version_info[1]}\n"


def test_a_cache_that_was_emptied_is_filled_again(tmp_path: Path) -> None:
    backend = BubblewrapBackend(tmp_path / "r", tmp_path / "c")
    try:
        spec = image_spec()
        assert not backend.prepare(spec).was_cached
        for layer in (backend.store.folder / "layers").iterdir():
            if not layer.name.startswith("skeleton"):
                shutil.rmtree(layer)
        image = backend.prepare(spec)
        assert not image.was_cached
        with backend.start(image, Limits(), NetworkPolicy()) as sandbox:
            assert sh(sandbox, "cat data/one.txt").stdout == b"one\n"
    finally:
        backend.close()


def test_the_bench_itself_uses_the_small_image(bench: Bench) -> None:
    with bench.start() as sandbox:
        assert out(sandbox, "cat /app/data/one.txt") == "one\n"
