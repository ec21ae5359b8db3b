"""What runs the tests of foreign bundles: pytest from a trusted, read-only mount.

Thousands of public `test.sh` begin by fetching curl, uv and pytest. Where such a beginning is
recognised (the floor above does that), the script runs byte for byte as it is, but what it would
fetch is already there: programs of the same names come before those of the image, install nothing
and run pytest from here. The image's own files are not used where the script asked for an
environment of its own, so that work in a shared root cannot have changed who judges it.
"""

from __future__ import annotations

import re
from pathlib import Path

from sandbox.contracts import Mount, ToolchainUse
from sandbox.errors import SandboxUnavailable
from sandbox.toolchain.making import made

TARGET = "/ratchet-toolchain"
"""Where sandboxes see the toolchain."""
NOTE = "/logs/verifier/toolchain.txt"
"""Where the toolchain says what ran the tests."""

_BY_THE_SYSTEMS_BASH = """\
for bash in /bin/bash /usr/bin/bash; do [ -x "$bash" ] && exec "$bash" -c "$0"; done
exec bash -c "$0"
"""
_COMMAND = f'export PATH="{TARGET}/bin:$PATH"; /tests/test.sh'
_NONE = re.compile(r"no pytest: ([A-Za-z0-9 .,']{1,200})")
_SAID = re.compile(r"pytest [0-9.]+ on the (toolchain|image)'s Python [0-9.]+")


class Toolchain:
    """The toolchain of this machine, below `home` (a folder); made when it is first needed."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def mount(self) -> Mount:
        """Its folder as sandboxes see it.

        Raises SandboxUnavailable when it is not there and cannot be fetched.
        """
        return Mount(str(made(self._home, TARGET).resolve()), TARGET)


def test_command(use: ToolchainUse | None) -> list[str]:
    """How `/tests/test.sh` is started: as by `bash -c`, but by no other bash of the PATH.

    In a shared sandbox the solver may have put one there.
    """
    command = "/tests/test.sh" if use is None else _COMMAND
    return ["/bin/sh", "-c", _BY_THE_SYSTEMS_BASH, command]


def test_environment(use: ToolchainUse | None) -> tuple[tuple[str, str], ...]:
    """What the toolchain's programs are told through the environment."""
    if use is None:
        return ()
    return (
        ("BASH_ENV", f"{TARGET}/functions.sh"),
        ("RATCHET_APT", "replaced" if use.is_apt_replaced else "real"),
        ("RATCHET_KIND", "isolated" if use.is_isolated else "image"),
        ("RATCHET_PACKAGES", " ".join(use.packages)),
    )


def probe_command(use: ToolchainUse) -> list[str]:
    """Whether the toolchain starts pytest, by its exit status: for a note that says it cannot."""
    kind = dict(test_environment(use))["RATCHET_KIND"]
    return ["/bin/sh", "-c", f"{TARGET}/libexec/tests {kind} python3 program --version"]


def says_no_pytest(note: bytes) -> bool:
    """Whether a note claims that no test could be run."""
    return _NONE.fullmatch(note.decode("ascii", "replace")) is not None


def described(use: ToolchainUse, note: bytes) -> str:
    """What ran the tests, from the note that the toolchain left ("" when it left none).

    Raises SandboxUnavailable when it could not start pytest: the reward is none then.
    """
    said = note.decode("ascii", "replace")
    if found := _NONE.fullmatch(said):
        raise SandboxUnavailable(f"the toolchain could not run the tests: {found[1]}")
    if _SAID.fullmatch(said):
        return f"{said} (mount)"
    return f"{use.release} (mount; not started by the tests)"
