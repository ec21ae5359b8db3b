"""The root file system made of the host's own read-only `/usr` and a small writable skeleton."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from pathlib import Path

from sandbox.errors import Refused

PYTHON_AT = "/opt/python"
"""Where the running interpreter's prefix is mounted when the host has no `/usr/bin/python3`."""

_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_FOLDERS: tuple[tuple[str, int], ...] = (
    *(
        (name, 0o755)
        for name in (
            *("dev", "etc", "etc/alternatives", "etc/ssl", "home", "logs", "media", "mnt", "opt"),
            *("proc", "run", "run/lock", "srv", "sys", "usr", "usr/local"),
            *(f"usr/local/{name}" for name in ("bin", "etc", "games", "include", "lib")),
            *(f"usr/local/{name}" for name in ("sbin", "share", "src")),
            *("var", "var/backups", "var/cache", "var/lib", "var/log", "var/mail", "var/opt"),
            "var/spool",
        )
    ),
    ("root", 0o700),
    ("tmp", 0o1777),
    ("var/tmp", 0o1777),
    ("logs/agent", 0o777),
    ("logs/verifier", 0o777),
    ("logs/artifacts", 0o777),
)
_USERS = """root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
bin:x:2:2:bin:/bin:/usr/sbin/nologin
sys:x:3:3:sys:/dev:/usr/sbin/nologin
mail:x:8:8:mail:/var/mail:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
backup:x:34:34:backup:/var/backups:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
"""
_GROUPS = """root:x:0:
daemon:x:1:
bin:x:2:
sys:x:3:
adm:x:4:
tty:x:5:
mail:x:8:
staff:x:50:
www-data:x:33:
backup:x:34:
users:x:100:
nogroup:x:65534:
"""
_TEXTS = {
    "etc/passwd": _USERS,
    "etc/group": _GROUPS,
    "etc/hostname": "sandbox\n",
    "etc/hosts": "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost\n",
    "etc/resolv.conf": "",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\n",
    "etc/host.conf": "multi on\n",
    "etc/timezone": "Etc/UTC\n",
    "etc/shells": "/bin/sh\n/bin/bash\n",
    "etc/profile": "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n",
    "etc/fstab": "",
}
# Taken from the host where there: what tools need to run, and nothing that tells about its users.
_FROM_HOST = (
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/debian_version",
    "etc/protocols",
    "etc/services",
    "etc/mime.types",
    "etc/magic",
    "etc/login.defs",
    "etc/locale.alias",
    "etc/ssl/openssl.cnf",
)
_LINK_FOLDERS = ("etc/alternatives", "etc/ld.so.conf.d")

# Package → the commands that show it is there, where they are not simply its name.
_COMMANDS: dict[str, tuple[str, ...]] = {
    "python3": ("python3",),
    "python3-minimal": ("python3",),
    "coreutils": ("ls", "sort", "sha256sum"),
    "findutils": ("find", "xargs"),
    "diffutils": ("diff", "cmp"),
    "grep": ("grep",),
    "procps": ("ps", "pgrep"),
    "util-linux": ("flock", "setsid"),
    "xz-utils": ("xz",),
    "bsdutils": ("logger",),
    "sqlite3": ("sqlite3",),
    "ca-certificates": (),
    "tzdata": (),
    "bash": ("bash",),
    "netcat-openbsd": ("nc",),
    "iproute2": ("ip",),
    "openssl": ("openssl",),
}
_SYSTEM_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


def has_python() -> bool:
    """Whether the host's `/usr` brings its own Python."""
    return os.access("/usr/bin/python3", os.X_OK)


def running_prefix() -> Path:
    """The base prefix of the interpreter that runs us."""
    return Path(sys.base_prefix)


def host_folders() -> tuple[str, ...]:
    """The host's folders that are mounted read-only: `/usr`, and what is not merged into it."""
    apart = [f"/{name}" for name in _MERGED if Path(f"/{name}").is_dir()]
    return ("/usr", *(path for path in apart if not Path(path).is_symlink()))


def check_packages(packages: tuple[str, ...], *, has_mounted_python: bool) -> None:
    """Raise Refused unless the host has the commands of all these Debian packages."""
    for package in packages:
        if "=" in package or ":" in package:
            raise Refused(
                f"apt-get install {package}: a fixed version or architecture needs Docker"
            )
        for command in _COMMANDS.get(package, (package,)):
            if command == "python3" and has_mounted_python:
                continue
            if shutil.which(command, path=_SYSTEM_PATH) is None:
                raise Refused(
                    f"apt-get install {package}: this host has no {command!r}; "
                    "install it on the host, or use Docker"
                )


def skeleton_key(*, has_mounted_python: bool) -> str:
    """Changes whenever the skeleton would."""
    total = hashlib.sha256(Path(__file__).read_bytes())
    total.update(f"{has_mounted_python} {sys.version_info.minor}".encode())
    for name in _FROM_HOST:
        total.update(_host_bytes(name) or b"-")
    for folder in _LINK_FOLDERS:
        total.update(repr(sorted(_host_entries(folder).items())).encode())
    total.update(repr([(n, _link(f"/{n}")) for n in _MERGED]).encode())
    return total.hexdigest()[:16]


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


def _host_bytes(name: str) -> bytes | None:
    try:
        return Path("/", name).read_bytes()
    except OSError:
        return None


def _host_entries(folder: str) -> dict[str, str | bytes]:
    """Links (as text) and small files (as bytes) of a host folder."""
    found: dict[str, str | bytes] = {}
    if Path("/", folder).is_dir():
        for path in Path("/", folder).iterdir():
            if path.is_symlink():
                found[path.name] = os.readlink(path)
            elif path.is_file():
                found[path.name] = path.read_bytes()
    return found


def write_skeleton(at: Path, owner: int | None, *, has_mounted_python: bool) -> None:
    """Write the skeleton as a folder; `owner` is the host's id that means root inside."""
    at.mkdir(mode=0o755)
    for name, mode in _FOLDERS:
        (at / name).mkdir(exist_ok=True)
        (at / name).chmod(mode)
    for name, text in _TEXTS.items():
        (at / name).write_text(text)
    for name in _FROM_HOST:
        data = _host_bytes(name)
        if data is not None:
            (at / name).parent.mkdir(parents=True, exist_ok=True)
            (at / name).write_bytes(data)
    for folder in _LINK_FOLDERS:
        (at / folder).mkdir(parents=True, exist_ok=True)
        for name, content in _host_entries(folder).items():
            if isinstance(content, str):
                (at / folder / name).symlink_to(content)
            else:
                (at / folder / name).write_bytes(content)
    _write_links(at, has_mounted_python=has_mounted_python)
    if owner is not None:
        for path in (at, *at.rglob("*")):
            os.chown(path, owner, owner, follow_symlinks=False)


def _write_python(path: Path) -> None:
    """The command `python3` for the mounted prefix, which may bring its own shared library."""
    program = f"{PYTHON_AT}/bin/python3.{sys.version_info.minor}"
    lines = ("#!/bin/sh", f"export LD_LIBRARY_PATH={PYTHON_AT}/lib", f'exec {program} "$@"', "")
    path.write_text("\n".join(lines))
    path.chmod(0o755)


def _write_links(at: Path, *, has_mounted_python: bool) -> None:
    links = {
        "etc/localtime": "/usr/share/zoneinfo/Etc/UTC",
        "etc/os-release": "/usr/lib/os-release",
        "etc/mtab": "/proc/mounts",
        "var/run": "/run",
        "var/lock": "/run/lock",
    }
    for name in _MERGED:
        target = _link(f"/{name}")
        if target is not None:
            links[name] = target
        elif Path(f"/{name}").is_dir():
            (at / name).mkdir()
    if has_mounted_python:
        (at / PYTHON_AT.lstrip("/")).mkdir(parents=True)
        _write_python(at / "usr/local/bin/python3")
    for name, target in links.items():
        (at / name).symlink_to(target)
