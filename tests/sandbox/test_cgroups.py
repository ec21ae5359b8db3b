"""Where groups of a sandbox are made, by the files of both versions; on folders that look so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox.warden.cgroups import Cgroups, Groups, own_folders, remove

_REQUEST = {
    "id": "7",
    "memory_bytes": 100 << 20,
    "disk_bytes": 10 << 20,
    "processes": 50,
    "cpu_quota": 0.5,
}


def _write(folder: Path, **texts: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        (folder / name.replace("__", ".")).write_text(text)


def _unified(folder: Path, controllers: str) -> None:
    _write(folder, cgroup__subtree_control=controllers, cgroup__procs="")


def _proc(tmp_path: Path, text: str) -> str:
    (tmp_path / "proc").write_text(text)
    return str(tmp_path / "proc")


def test_version_1_has_a_folder_for_each_controller(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    for name in ("memory/service", "pids", "cpu", "cpuset"):
        (root / name).mkdir(parents=True)
    lines = "9:name=systemd:/\n8:pids:/\n4:memory:/service\n3:cpuset:/\n2:cpu,cpuacct:/\n0::/\n"
    assert own_folders(str(root), _proc(tmp_path, lines)) == {
        "pids": f"{root}/pids",
        "memory": f"{root}/memory/service",
        "cpu": f"{root}/cpu",
    }


def test_version_2_takes_the_nearest_folder_that_gives_controllers(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    _unified(root, "cpu memory pids io\n")
    _unified(root / "system.slice", "memory pids\n")
    _unified(root / "system.slice/ratchet.service", "\n")
    proc = _proc(tmp_path, "0::/system.slice/ratchet.service\n")
    assert own_folders(str(root), proc) == {
        "memory": f"{root}/system.slice",
        "pids": f"{root}/system.slice",
        "cpu": str(root),
    }


def test_version_2_leaves_what_it_may_not_write(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    _unified(root, "memory pids\n")
    _write(root / "user", cgroup__subtree_control="memory\n")  # no processes may be moved there
    proc = _proc(tmp_path, "0::/user/session\n")
    expected = {"memory": str(root), "pids": str(root)}
    assert own_folders(str(root), proc) == expected
    assert own_folders(str(root), _proc(tmp_path, "0::/../elsewhere\n")) == {}
    assert own_folders(str(root), str(tmp_path / "none")) == {}


@pytest.mark.parametrize("version", [1, 2])
def test_limits_are_written_in_the_words_of_each_version(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "cgroup"
    names = ("memory", "pids", "cpu")
    if version == 1:
        for name in names:
            (root / name).mkdir(parents=True)
        proc = _proc(tmp_path, "".join(f"{n}:{name}:/\n" for n, name in enumerate(names)))
    else:
        _unified(root, "cpu memory pids\n")
        proc = _proc(tmp_path, "0::/\n")
    files = {
        1: {
            "memory": ("memory.limit_in_bytes", "memory.oom_control", "memory.stat"),
            "pids": ("pids.max", "pids.events"),
            "cpu": ("cpu.cfs_quota_us",),
        },
        2: {
            "": (
                *("memory.max", "memory.events", "memory.stat", "memory.swap.max"),
                *("pids.max", "pids.events", "cpu.max"),
            )
        },
    }[version]
    make = os.mkdir

    def as_the_kernel_does(path: str) -> None:
        make(path)
        for part, here in files.items():
            if part in Path(path).parent.name or not part:
                for name in (*here, "cgroup.procs"):
                    Path(path, name).write_text("")

    cgroups = Cgroups("ratchet-1.2-", str(root), proc)
    monkeypatch.setattr(os, "mkdir", as_the_kernel_does)
    groups = cgroups.create(_REQUEST)
    monkeypatch.undo()
    assert len(groups.paths) == len(groups.procs) == (3 if version == 1 else 1)
    guard = str((100 << 20) + (10 << 20) + (64 << 20))
    at = root / "memory/ratchet-1.2-7" if version == 1 else root / "ratchet-1.2-7"
    limit = "memory.limit_in_bytes" if version == 1 else "memory.max"
    assert (at / limit).read_text() == guard
    pids = root / "pids/ratchet-1.2-7" if version == 1 else at
    assert (pids / "pids.max").read_text() == "52"  # the first process and bubblewrap's beside
    cpu = root / "cpu/ratchet-1.2-7" if version == 1 else at
    name = "cpu.cfs_quota_us" if version == 1 else "cpu.max"
    assert (cpu / name).read_text() == "50000"
    if version == 2:
        assert (at / "memory.swap.max").read_text() == "0"
    _read_back(groups, at, pids, version)
    groups.close()


def _read_back(groups: Groups, memory: Path, pids: Path, version: int) -> None:
    assert (groups.oom_kills(), groups.refused_processes()) == (0, 0)
    if version == 1:
        text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
        (memory / "memory.oom_control").write_text(text)
        (memory / "memory.stat").write_text("cache 9\nrss 4096\nrss_huge 0\nshmem 5\ntotal_rss 7\n")
    else:
        text = "low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\noom_group_kill 0\n"
        (memory / "memory.events").write_text(text)
        (memory / "memory.stat").write_text("anon 4096\nfile 9\nkernel 1\nshmem 5\n")
    (pids / "pids.events").write_text("max 4\n")
    assert groups.oom_kills() == 3
    assert groups.refused_processes() == 4
    assert groups.used_memory() == (4096, 5)


def test_without_groups_nothing_is_counted(tmp_path: Path) -> None:
    groups = Cgroups("x", str(tmp_path), str(tmp_path / "none")).create(_REQUEST)
    assert groups.paths == []
    assert (groups.oom_kills(), groups.refused_processes(), groups.used_memory()) == (0, 0, None)
    remove([str(tmp_path / "gone")])


def test_a_group_that_is_there_already_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cgroup/pids").mkdir(parents=True)
    made = Cgroups("ratchet-1.2-", f"{tmp_path}/cgroup", _proc(tmp_path, "2:pids:/\n"))
    (tmp_path / "cgroup/pids/ratchet-1.2-7").mkdir()
    with pytest.raises(FileExistsError):
        made.create(_REQUEST)
    assert (tmp_path / "cgroup/pids/ratchet-1.2-7").is_dir()


def test_where_no_group_can_be_made_none_is_promised(tmp_path: Path) -> None:
    root = tmp_path / "cgroup"
    root.mkdir()
    (root / "memory").symlink_to("/proc/self")  # a folder in which nobody makes another
    proc = _proc(tmp_path, "1:memory:/\n")
    assert own_folders(str(root), proc) == {"memory": f"{root}/memory"}
    assert Cgroups("x", str(root), proc).folders == {}
