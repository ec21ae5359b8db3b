"""What Docker itself says of a container that we started, and what containers reach."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import docker
import pytest

from sandbox.backends.docker import CAPABILITIES, DockerBackend
from sandbox.backends.docker_engine import HOME_LABEL, HOST_LABEL, LABEL, OWNER_LABEL
from sandbox.backends.docker_sandbox import DRIVER_PROCESSES, DockerSandbox
from sandbox.base import Sandbox
from sandbox.contracts import Limits, Mount, NetworkMode, NetworkPolicy
from sandbox.errors import Refused, SandboxUnavailable
from tests.sandbox.conformance import DOCKERFILE, MIB, Bench, image_spec, out, sh

pytestmark = pytest.mark.docker
PUBLIC = NetworkPolicy(NetworkMode.PUBLIC)


@contextlib.contextmanager
def seen_by_docker(sandbox: Sandbox) -> Iterator[dict[str, Any]]:
    """The engine's own account of a sandbox."""
    assert isinstance(sandbox, DockerSandbox)
    client = docker.from_env()
    try:
        yield client.api.inspect_container(sandbox.container.name)
    finally:
        client.close()


def test_a_container_is_confined_as_designed(docker_bench: Bench) -> None:
    limits = Limits(memory_bytes=100 * MIB, disk_bytes=50 * MIB, processes=30, descriptors=99)
    with docker_bench.start(limits) as sandbox, seen_by_docker(sandbox) as found:
        host = found["HostConfig"]
    assert (host["CapDrop"], host["Privileged"]) == (["ALL"], False)
    assert {name.removeprefix("CAP_") for name in host["CapAdd"]} == set(CAPABILITIES)
    assert "no-new-privileges" in host["SecurityOpt"]
    assert not any("unconfined" in option for option in host["SecurityOpt"])
    assert (host["Memory"], host["MemorySwap"]) == (100 * MIB, 100 * MIB)
    assert host["PidsLimit"] == 30 + DRIVER_PROCESSES
    assert {(u["Name"], u["Soft"], u["Hard"]) for u in host["Ulimits"]} >= {
        ("nofile", 99, 99),
        ("core", 0, 0),
    }
    assert (host["NetworkMode"], host["LogConfig"]["Type"]) == ("none", "none")
    assert not host["Binds"]
    assert not found["Mounts"]
    assert host["RestartPolicy"]["Name"] in ("", "no")
    assert [host[name] for name in ("PidMode", "UTSMode", "UsernsMode")] == ["", "", ""]
    assert host["IpcMode"] in ("private", "")
    assert "/proc/kcore" in host["MaskedPaths"]


def test_all_that_is_made_is_labelled(docker: DockerBackend, docker_bench: Bench) -> None:
    spec = docker_bench.spec(DOCKERFILE + f"ENV NEW={secrets.token_hex(8)}\n".encode())
    with (
        docker_bench.start(network=PUBLIC, spec=spec) as sandbox,
        seen_by_docker(sandbox) as found,
    ):
        labels = found["Config"]["Labels"]
        network = docker.engine.api.inspect_network(found["HostConfig"]["NetworkMode"])
        image = docker.engine.api.inspect_image(found["Image"])
    keys = (OWNER_LABEL, HOST_LABEL, HOME_LABEL)
    assert labels[LABEL] == "sandbox"
    assert network["Labels"][LABEL] == "network"
    assert image["Config"]["Labels"][LABEL] == "image"
    assert image["Config"]["Labels"][HOME_LABEL] == docker.labels[HOME_LABEL]
    for made in (labels, network["Labels"]):
        assert {key: made[key] for key in keys} == {key: docker.labels[key] for key in keys}


def test_root_can_do_what_tasks_need_and_no_more(docker_bench: Bench) -> None:
    with docker_bench.start() as sandbox:
        assert sh(sandbox, "touch f && chown 1234:5678 f && chmod 4755 f").exit_status == 0
        assert out(sandbox, "stat -c %u:%g f") == "1234:5678\n"
        assert out(sandbox, "setpriv --reuid 1234 --regid 5678 --clear-groups id -u") == "1234\n"
        assert out(sandbox, "chroot / true; echo $?") == "0\n"
        bounding = int(out(sandbox, "awk '/^CapBnd/ {print $2}' /proc/self/status"), 16)
        assert bounding.bit_count() == len(CAPABILITIES)


def test_mounts_are_read_only(docker_bench: Bench, tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("ours\n")
    mount = Mount(str(tmp_path), "/opt/tool chain")
    with docker_bench.start(mounts=[mount]) as sandbox:
        assert out(sandbox, "cat '/opt/tool chain/tool'") == "ours\n"
        assert sh(sandbox, "echo x > '/opt/tool chain/tool'").exit_status != 0
        assert sh(sandbox, "rm '/opt/tool chain/tool'").exit_status != 0
        sandbox.remove_tree("/opt/other")
    assert (tmp_path / "tool").read_text() == "ours\n"


def test_public_sandboxes_reach_out_but_not_each_other(docker_bench: Bench) -> None:
    listen = "exec 3<>/dev/tcp/{}/{}"
    server = (
        "use Socket; socket S, PF_INET, SOCK_STREAM, 0; setsockopt S, SOL_SOCKET, SO_REUSEADDR, 1;"
        " bind S, sockaddr_in(7777, INADDR_ANY) or die; listen S, 5; print 'up'; $| = 1;"
        " while (accept C, S) { close C }"
    )
    with docker_bench.start(network=PUBLIC) as one, docker_bench.start(network=PUBLIC) as two:
        sh(one, f"perl -e {server!r} >/app/log 2>&1 & sleep 0.5")
        lines = out(one, "cat /proc/net/fib_trie").splitlines()
        address = [
            above.split()[-1]
            for above, line in pairwise(lines)
            if "host LOCAL" in line and "127." not in above
        ]
        assert address, lines
        assert sh(one, f"timeout 3 bash -c '{listen.format(address[0], 7777)}'").exit_status == 0
        reached = sh(two, f"timeout 3 bash -c '{listen.format(address[0], 7777)}'")
        assert reached.exit_status != 0
        assert "default" in out(two, 'awk \'$2 == "00000000" {print "default"}\' /proc/net/route')


def test_an_allow_list_is_refused_by_name(docker_bench: Bench) -> None:
    policy = NetworkPolicy(NetworkMode.ALLOWLIST, ("example.org",))
    with pytest.raises(Refused, match="allowlist"):
        docker_bench.start(network=policy)


def test_an_unknown_runtime_is_named(docker: DockerBackend, tmp_path: Path) -> None:
    other = DockerBackend(tmp_path, tmp_path, runtime="no-such-runtime", places=docker.places)
    try:
        image = docker.prepare(image_spec())
        with pytest.raises(SandboxUnavailable, match="no-such-runtime"):
            other.start(image, Limits(), NetworkPolicy())
    finally:
        other.close()
