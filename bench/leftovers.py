"""What a machine holds that sandboxes could leave behind, before and after."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path

import docker

from bench import processes
from sandbox.reaper import SERVER_MARKER

_CACHES = ("layers", "manifests")
"""Folders of built images: they are meant to stay."""


@dataclass(frozen=True, slots=True)
class Held:
    """One line per thing."""

    containers: frozenset[str]
    networks: frozenset[str]
    volumes: frozenset[str]
    mounts: frozenset[str]
    cgroups: frozenset[str]
    folders: frozenset[str]
    processes: frozenset[str]

    def beyond(self, before: Held, marks: Collection[str] = ()) -> dict[str, list[str]]:
        """What is new by kind; with `marks`, only lines that hold one of them."""
        found = {}
        for field in fields(self):
            new = sorted(getattr(self, field.name) - getattr(before, field.name))
            if marks:
                new = [line for line in new if any(mark in line for mark in marks)]
            if new:
                found[field.name] = new
        return found


def look(home: Path) -> Held:
    """Everything now. `home` holds the folders of the back-end that is tried."""
    containers, networks, volumes = _docker_things()
    return Held(
        containers=containers,
        networks=networks,
        volumes=volumes,
        mounts=frozenset(_mounts()),
        cgroups=frozenset(_cgroups()),
        folders=frozenset(_folders(home)),
        processes=frozenset(
            f"{pid} {line}"
            for pid in processes.pids()
            if SERVER_MARKER in (line := processes.command_line(pid))
        ),
    )


def containers_of(owner: str) -> list[str]:
    """Ids of the containers whose labels name this owner; none where no engine answers."""
    lines, _networks, _volumes = _docker_things()
    return [line.split()[0] for line in lines if owner in line]


def marks_of(containers: Collection[str]) -> list[str]:
    """What their cgroups and mounts bear: the ids, and the places of their root file systems."""
    marks = list(containers)
    client = docker.APIClient(timeout=30)
    try:
        for key in containers:
            data = client.inspect_container(key)["GraphDriver"]["Data"] or {}
            marks += [place for name, place in data.items() if name in ("MergedDir", "WorkDir")]
    except (docker.errors.DockerException, OSError):
        pass  # it has just been removed
    finally:
        client.close()
    return marks


def _docker_things() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    client = docker.APIClient(timeout=30)
    try:
        containers = {
            f"{found['Id']} {found['Names']} {found['Labels']}"
            for found in client.containers(all=True)
        }
        networks = {f"{found['Id']} {found['Labels']}" for found in client.networks()}
        volumes = {
            f"{found['Name']} {found['Labels']}" for found in client.volumes()["Volumes"] or ()
        }
    except (docker.errors.DockerException, OSError):
        return frozenset(), frozenset(), frozenset()  # no engine holds anything here
    finally:
        client.close()
    return frozenset(containers), frozenset(networks), frozenset(volumes)


def _mounts() -> list[str]:
    """Root, place, kind and options of each mount; ids and parents are numbers that change."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [" ".join(line.split()[3:]) for line in lines]


def _cgroups() -> list[str]:
    return [path for path, _folders, _files in os.walk("/sys/fs/cgroup")]


def _folders(home: Path) -> list[str]:
    found = [
        str(path)
        for top in {Path(tempfile.gettempdir()), Path("/dev/shm")}  # noqa: S108
        if top.is_dir()
        for path in top.iterdir()
    ]
    for path, folders, files in os.walk(home):
        folders[:] = [name for name in folders if name not in _CACHES]
        found += [os.path.join(path, name) for name in (*folders, *files)]
    return found
