"""A build that fails says whose fault it was."""

from __future__ import annotations

import pytest

from sandbox.errors import ImageBuildFailed, SandboxUnavailable
from tests.sandbox.conformance import Bench
from tests.sandbox.conformance_bench import DOCKERFILE


@pytest.mark.docker
@pytest.mark.parametrize(
    "words",
    [
        "write /usr/bin/x: no space left on device",
        "Temporary failure resolving 'mirror.example'",
        "curl: (6) Could not resolve host: example.org",
        "Could not connect to mirror.example:80, connection timed out",
        "E: Failed to fetch http://mirror.example  502 Bad Gateway",
    ],
)
def test_a_full_disk_and_a_broken_network_are_not_the_bundles(
    docker_bench: Bench, words: str
) -> None:
    step = f'RUN echo "{words}" >&2; exit 100\n'.encode()
    with pytest.raises(SandboxUnavailable, match="could not be built now"):
        docker_bench.backend.prepare(docker_bench.spec(DOCKERFILE + step))


@pytest.mark.docker
@pytest.mark.parametrize("words", ["E: Unable to locate package nosuch", "404 Not Found"])
def test_what_a_dockerfile_asks_for_in_vain_is_the_bundles(docker_bench: Bench, words: str) -> None:
    step = f'RUN echo "{words}" >&2; exit 100\n'.encode()
    with pytest.raises(ImageBuildFailed, match="does not build at Step"):
        docker_bench.backend.prepare(docker_bench.spec(DOCKERFILE + step))


@pytest.mark.docker
def test_words_of_the_dockerfile_itself_excuse_nothing(docker_bench: Bench) -> None:
    step = b"RUN true || echo no space left on device; exit 3\n"
    with pytest.raises(ImageBuildFailed):
        docker_bench.backend.prepare(docker_bench.spec(DOCKERFILE + step))
