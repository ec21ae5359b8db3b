"""A copy of the running Python that works in any image with a C library as new as this machine's.

Tests that ask for an environment of their own (uv) get this one: nobody inside the sandbox can
have changed it, and it is there when the image has no Python at all.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

_LEFT_OUT = shutil.ignore_patterns(
    "test", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "pydoc_data",
    "site-packages", "dist-packages", "config-*", "*.opt-?.pyc", "_tkinter.*", "_test*.so",
    "_ctypes_test.*", "_xxtestfuzz.*", "xx*.so", "sitecustomize.*", "*.a",
)  # fmt: skip
_OF_THE_IMAGE = re.compile(r"(libc|libm|libdl|librt|libpthread|libutil|ld-linux[^.]*)\.so")
_NEEDED = re.compile(r"^\s*(\S+) => (/\S+)", re.MULTILINE)
_LOADER = re.compile(r"^\s*(/\S*/ld-linux\S*)", re.MULTILINE)
_WRAPPER = """\
#!/bin/sh
# The toolchain's Python with its own libraries; the environment says nothing of them.
exec {loader} --argv0 "$0" --library-path {home}/lib {home}/bin/{name} "$@"
"""


class NoInterpreter(Exception):
    """This machine's Python cannot be copied. Says why in one line."""


def copy_interpreter(target: Path, home: str) -> None:
    """Lay a copy into the folder `target`, to be seen at the absolute path `home` later.

    Raises NoInterpreter where programs do not start by glibc's loader, and OSError.
    """
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    stdlib = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(stdlib, target / "lib" / version, ignore=_LEFT_OUT)
    dynamic = Path(sysconfig.get_config_var("DESTSHARED") or stdlib / "lib-dynload")
    modules = target / "lib" / version / "lib-dynload"
    if not modules.is_dir():
        shutil.copytree(dynamic, modules, ignore=_LEFT_OUT)
    program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    (target / "bin").mkdir()
    shutil.copy2(program, target / "bin" / version)
    loader = _copy_libraries([program, *modules.glob("*.so")], target / "lib")
    wrapper = target / "bin" / "python3"
    wrapper.write_text(_WRAPPER.format(loader=loader, home=home, name=version))
    wrapper.chmod(0o755)
    (target / "bin" / "python").symlink_to("python3")
    packages = target / "lib" / version / "site-packages"
    packages.mkdir()
    (packages / "toolchain.pth").write_text(f"{Path(home).parent}/lib\n")


def _copy_libraries(programs: list[Path], folder: Path) -> str:
    """Copy what these programs load beside the C library; the path of their loader."""
    try:
        done = subprocess.run(
            ["ldd", *map(str, programs)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        raise NoInterpreter("there is no ldd on this machine") from None
    loader = _LOADER.search(done.stdout)
    if loader is None:
        raise NoInterpreter("this machine's Python is not started by glibc's loader")
    for name, path in sorted(set(_NEEDED.findall(done.stdout))):
        if not _OF_THE_IMAGE.match(name) and not (folder / name).exists():
            shutil.copy2(Path(path).resolve(), folder / name)
    return loader[1]
