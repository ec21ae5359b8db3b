"""Maps the user ids of a process that has just made its own user namespace."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sandbox.warden.wire import Header


def write_maps(pid: int, config: Header) -> bool:
    """As root: id 0 inside is `id_base`; else by the helpers. Whether it worked; raises OSError."""
    if config["id_helpers"]:
        return ask_helpers(pid, config["id_helpers"])
    for name in ("uid_map", "gid_map"):
        with open(f"/proc/{pid}/{name}", "w", encoding="utf-8") as file:
            file.write(f"0 {config['id_base']} {config['id_count']}\n")
    return True


def ask_helpers(pid: int, helpers: Sequence[Sequence[str]]) -> bool:
    """Run the programs that may map ids for an ordinary user; whether all of them did."""
    silent = [(os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)]
    for program, *arguments in helpers:
        words = [program, str(pid), *arguments]
        spawned = os.posix_spawn(program, words, {}, file_actions=silent)
        if os.waitpid(spawned, 0)[1] != 0:
            return False
    return True
