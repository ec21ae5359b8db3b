"""What a machine has, read from made-up trees of /proc and of control groups."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sandbox.machine import Machine, reserve_bytes

_MIB = 1024 * 1024
_GIB = 1024 * _MIB


def _tree(folder: Path, files: dict[str, str]) -> Machine:
    for name, text in {
        "proc/meminfo": "MemTotal: 16777216 kB\nMemFree: 5 kB\nMemAvailable: 8388608 kB\n",
        **files,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Machine(folder / "proc", folder / "cgroup")


def test_without_control_groups_the_machine_is_what_there_is(tmp_path: Path) -> None:
    machine = _tree(tmp_path, {})
    cpus = sorted(os.sched_getaffinity(0))
    capacity = machine.capacity()
    assert (capacity.cpus, capacity.cpu_numbers) == (len(cpus), tuple(cpus))
    assert capacity.memory_bytes == 15 * _GIB
    assert machine.available_bytes() == 8 * _GIB
    assert machine.memory_pressure() == 0.0


@pytest.mark.parametrize(
    ("total", "reserve"), [(64 * _GIB, 4 * _GIB), (4 * _GIB, 512 * _MIB), (_GIB, 256 * _MIB)]
)
def test_a_small_machine_keeps_a_smaller_reserve(total: int, reserve: int) -> None:
    assert reserve_bytes(total) == reserve


def test_limits_of_version_2_groups_count_from_the_own_one_up(tmp_path: Path) -> None:
    machine = _tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/outer/inner\n",
            "cgroup/outer/memory.max": f"{4 * _GIB}\n",
            "cgroup/outer/memory.current": f"{3 * _GIB}\n",
            "cgroup/outer/memory.stat": f"anon 5\ninactive_file {512 * _MIB}\n",
            "cgroup/outer/inner/memory.max": "max\n",
            "cgroup/outer/inner/cpu.max": "50000 100000\n",
            "cgroup/outer/cpu.max": "max 100000\n",
        },
    )
    assert machine.capacity().cpus == 0.5
    assert machine.capacity().memory_bytes == 4 * _GIB - 512 * _MIB
    assert machine.available_bytes() == 1536 * _MIB


def test_limits_of_version_1_groups_count(tmp_path: Path) -> None:
    machine = _tree(
        tmp_path,
        {
            "proc/self/cgroup": "5:cpu,cpuacct:/box\n4:memory:/box\n0::/\n",
            "cgroup/memory/box/memory.limit_in_bytes": f"{2 * _GIB}\n",
            "cgroup/memory/box/memory.usage_in_bytes": f"{_GIB}\n",
            "cgroup/memory/box/memory.stat": "inactive_file 1\ntotal_inactive_file 4096\n",
            "cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            "cgroup/cpu/box/cpu.cfs_quota_us": "25000\n",
            "cgroup/cpu/box/cpu.cfs_period_us": "100000\n",
            "cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "cgroup/cpu/cpu.cfs_period_us": "100000\n",
        },
    )
    assert machine.capacity().cpus == 0.25
    assert machine.memory_bytes == 2 * _GIB
    assert machine.available_bytes() == _GIB + 4096


def test_the_pressure_is_that_of_all(tmp_path: Path) -> None:
    lines = "some avg10=80.00 avg60=1.00 total=1\nfull avg10=12.50 avg60=1.00 total=1\n"
    assert _tree(tmp_path, {"proc/pressure/memory": lines}).memory_pressure() == 0.125


def test_this_machine_can_be_read() -> None:
    machine = Machine()
    assert 0 < machine.available_bytes() <= machine.memory_bytes
    assert machine.capacity().memory_bytes < machine.memory_bytes
    assert 0.0 <= machine.memory_pressure() <= 1.0
