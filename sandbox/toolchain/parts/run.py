"""Runs pytest from the toolchain: `run.py isolated|image module|program ARGUMENT…`.

Started with -I -S, so that no file of the image is imported before pytest is. The image's own
packages come last and only where its Python was asked for; its `.pth` files may name folders, but
run no code. Works on Python 3.9 and later.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = "/tests"
NOTE = "/logs/verifier/toolchain.txt"
WITH_VALUE = frozenset(
    (
        *("--ctrf", "-c", "--config-file", "--rootdir", "--confcutdir", "--junitxml"),
        *("--junit-xml", "-k", "-m", "-p", "-o", "-W", "--basetemp", "--tb", "--durations"),
        *("--maxfail", "--timeout", "--color", "--log-level", "--log-file", "--deselect"),
        *("--ignore",),
    )
)
"""Options whose value is the next argument."""
CACHE_OPTIONS = ("--lf", "--last-fail", "--ff", "--failed-first", "--nf", "--new-first", "--cache")
CONFIGURATIONS = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")


def site_folders() -> list[str]:
    """Where the image's Python keeps its packages."""
    import site

    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    top = os.path.dirname(os.path.dirname(os.path.abspath(sys.executable)))
    found = []
    if os.path.exists(os.path.join(top, "pyvenv.cfg")):
        found.append(os.path.join(top, "lib", version, "site-packages"))
    found += site.getsitepackages()
    return [folder for folder in found if os.path.isdir(folder)]


def linked(folder: str) -> Iterator[str]:
    """The folders that this folder's .pth files name."""
    for name in sorted(os.listdir(folder)):
        if not name.endswith(".pth"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
        for line in lines:
            path = os.path.join(folder, line.strip())
            is_code = line.startswith(("#", "import ", "import\t"))
            if line.strip() and not is_code and os.path.isdir(path):
                yield path


def import_path(kind: str, how: str) -> list[str]:
    """Where to import from: the standard library, pytest, what was asked for, the image's own."""
    found = list(sys.path)
    found.append(f"{HERE}/lib")
    found += [f"{HERE}/extra/{name}" for name in extras()]
    found += [path for path in os.environ.get("PYTHONPATH", "").split(":") if path]
    if how == "module":
        found.append(os.getcwd())
    for folder in site_folders() if kind == "image" else ():
        found += [folder, *linked(folder)]
    return list(dict.fromkeys(found))


def extras() -> list[str]:
    """The packages beside pytest that the tests asked for."""
    return os.environ.get("RATCHET_PACKAGES", "").split()


def places(arguments: list[str]) -> list[str]:
    """The files and folders that pytest is given."""
    found = []
    is_value = False
    for argument in arguments:
        if is_value or argument.startswith("-"):
            is_value = not is_value and argument in WITH_VALUE
            continue
        path = os.path.abspath(argument.split("::")[0])
        if os.path.exists(path):
            found.append(path)
    return found or [os.getcwd()]


def has_configuration(place: str) -> bool:
    """Whether the tests bring a configuration of their own, beside this place or above it."""
    folder = place if os.path.isdir(place) else os.path.dirname(place)
    while folder.startswith(TESTS):
        if any(os.path.exists(os.path.join(folder, name)) for name in CONFIGURATIONS):
            return True
        folder = os.path.dirname(folder)
    return False


def locked(arguments: list[str]) -> list[str]:
    """Options that keep out what does not belong to the tests."""
    found = ["--disable-plugin-autoload", "-p", "ctrf"]
    if "pytest-timeout" in extras():
        found += ["-p", "timeout"]
    if not any(argument.startswith(CACHE_OPTIONS) for argument in arguments):
        found += ["-p", "no:cacheprovider"]
    given = places(arguments)
    names = {argument.split("=")[0] for argument in arguments}
    if not all(place == TESTS or place.startswith(f"{TESTS}/") for place in given):
        return found
    if "--confcutdir" not in names:
        found.append(f"--confcutdir={TESTS}")
    if not names & {"-c", "--config-file"} and not any(map(has_configuration, given)):
        found += ["-c", os.devnull]
        if "--rootdir" not in names:
            found.append(f"--rootdir={TESTS}")
    return found


def tidy_environment() -> None:
    """The programs that tests start see what the script made, without the toolchain."""
    for name in list(os.environ):
        if name.startswith(("RATCHET_", "PYTEST_")) or name == "BASH_ENV":
            del os.environ[name]
    kept = [folder for folder in os.environ.get("PATH", "").split(":") if folder != f"{HERE}/bin"]
    os.environ["PATH"] = ":".join(kept)


def described(version: str) -> str:
    """What runs the tests."""
    whose = "the toolchain's" if sys.prefix.startswith(HERE) else "the image's"
    return f"pytest {version} on {whose} Python {sys.version_info[0]}.{sys.version_info[1]}"


def leave_note(text: str) -> None:
    """Say what runs the tests, for the record of the trial; or why nothing does."""
    try:
        with open(NOTE, "w", encoding="ascii") as file:
            file.write(text)
    except OSError as error:
        sys.stderr.write(f"toolchain: {error}\n")


def main() -> None:
    """Run pytest, and end as it does."""
    kind, how, *arguments = sys.argv[1:]
    sys.path[:] = import_path(kind, how)
    options = locked(arguments)
    tidy_environment()
    try:
        import pytest
    except (ImportError, SyntaxError) as error:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        leave_note(f"no pytest: it does not run on the image's Python {version}")
        sys.exit(f"toolchain: pytest does not run on Python {version}: {error!r}")
    leave_note(described(pytest.__version__))
    sys.argv = ["pytest", *arguments]
    sys.exit(pytest.main([*options, *arguments]))


if __name__ == "__main__":
    main()
