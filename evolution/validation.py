"""Is a bundle well-formed? The rules of import and of the `format` gate, one line per problem."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evolution.bundle import Bundle, BundleError
from evolution.config_reader import read_task_config
from evolution.execution import has_bundled_tests
from evolution.harbor import included, strip_canary
from evolution.paths import tree_problems
from evolution.task_config import Problem, Severity, TaskConfig
from evolution.tree import Tree

FILE_CAP_BYTES = 256 * 1024 * 1024
BUNDLE_CAP_BYTES = 512 * 1024 * 1024
FILE_COUNT_CAP = 20_000
INSTRUCTION_CAP_BYTES = 1_000_000

_UNSEEN = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\U000e0000-\U000e007f]")
_CANARY = re.compile(rb"canary", re.IGNORECASE)


def validate_bundle(bundle: Bundle) -> tuple[Problem, ...]:
    """Everything wrong with a bundle, errors first; empty for a bundle without reproach.

    An error keeps it out. A warning is said and stored: no reference solution, an unknown key,
    a script with CRLF line ends.
    """
    found = [*_tree(bundle), *_sizes(bundle)]
    config, problems = _config(bundle)
    found.extend(problems)
    if config is not None:
        found.extend(_layout(bundle, config))
    found.extend(_instruction(bundle))
    found.extend(_scripts(bundle))
    return tuple(sorted(set(found), key=lambda p: (p.severity is not Severity.ERROR, p)))


def first_error(bundle: Bundle) -> Problem | None:
    """The first problem that keeps a bundle out, if any."""
    return next((p for p in validate_bundle(bundle) if p.severity is Severity.ERROR), None)


def canaries(bundle: Bundle) -> tuple[str, ...]:
    """The files that ask, by a canary, to be kept out of training corpora."""
    return tuple(f.path for f in bundle.files if f.link is None and _CANARY.search(f.data))


def _warning(path: str, reason: str) -> Problem:
    return Problem(path, reason, Severity.WARNING)


def _tree(bundle: Bundle) -> Iterator[Problem]:
    tree = Tree(bundle.files)
    broken = tree_problems(bundle.files)
    for path, reason in broken.items():
        yield Problem(path, reason)
    for file in bundle.files:
        if file.path in broken:
            continue
        leads_nowhere = tree.file(file.path) is None and not tree.is_folder(file.path)
        if file.link is not None and leads_nowhere:
            yield _warning(file.path, f"link to {file.link!r}, which is not there")
        name = file.path.rsplit("/", 1)[-1]
        if name.endswith((".", " ")) or ":" in name:
            yield _warning(file.path, "name that cannot exist on every file system")


def _sizes(bundle: Bundle) -> Iterator[Problem]:
    if len(bundle.files) > FILE_COUNT_CAP:
        yield Problem(".", f"{len(bundle.files):,} files, at most {FILE_COUNT_CAP:,} are taken")
    for file in bundle.files:
        if len(file.data) > FILE_CAP_BYTES:
            yield Problem(file.path, f"{len(file.data):,} bytes, at most {FILE_CAP_BYTES:,}")
    total = sum(len(file.data) for file in bundle.files)
    if total > BUNDLE_CAP_BYTES:
        yield Problem(".", f"{total:,} bytes in all, at most {BUNDLE_CAP_BYTES:,} are taken")


def _config(bundle: Bundle) -> tuple[TaskConfig | None, list[Problem]]:
    try:
        config, problems = read_task_config(bundle.config)
    except BundleError as error:
        return None, [Problem(error.path, error.reason)]
    return config, list(problems)


def _layout(bundle: Bundle, config: TaskConfig) -> Iterator[Problem]:
    """The files that Harbor requires, and those without which less can be verified."""
    for name in ("environment", "tests", "solution", "steps"):
        if name in bundle.by_path:
            yield Problem(name, "must be a folder of the bundle's own")
    if config.steps:
        yield from _steps(bundle, config)
        return
    if "instruction.md" not in bundle.by_path:
        yield Problem("instruction.md", "missing")
    images = ("environment/Dockerfile", "environment/docker-compose.yaml")
    if config.environment.docker_image is None and not any(i in bundle.by_path for i in images):
        yield Problem("environment/Dockerfile", "missing, and no docker_image is named")
    script = "test.bat" if config.environment.os == "windows" else "test.sh"
    if not has_bundled_tests(bundle, config):
        yield from _entry(bundle, "tests", script)
    if not any(f"solution/solve.{end}" in bundle.by_path for end in ("sh", "bat")):
        yield _warning(
            "solution/solve.sh", "no reference solution: it can be verified only in part"
        )
    if config.is_separate and not config.artifacts:
        yield _warning(
            "task.toml", "a separate verifier without artifacts sees /logs/artifacts alone"
        )


def _entry(bundle: Bundle, folder: str, script: str) -> Iterator[Problem]:
    path = f"{folder}/{script}"
    if path not in bundle.by_path:
        yield Problem(path, "missing")
        return
    try:
        is_kept = any(file.path == script for file in included(bundle.files, folder))
    except UnicodeDecodeError:
        yield Problem(f"{folder}/.harborignore", "not UTF-8")
        return
    if not is_kept:
        yield Problem(path, "excluded by .harborignore")


def _steps(bundle: Bundle, config: TaskConfig) -> Iterator[Problem]:
    for name in config.steps:
        path = f"steps/{name}/instruction.md"
        if path not in bundle.by_path:
            yield Problem(path, "missing")


def _instruction(bundle: Bundle) -> Iterator[Problem]:
    file = bundle.by_path.get("instruction.md")
    if file is None:
        return
    if file.link is not None:
        file = Tree(bundle.files).file("instruction.md")
        if file is None:
            yield Problem("instruction.md", "a link that leads to no file")
            return
    if len(file.data) > INSTRUCTION_CAP_BYTES:
        yield Problem("instruction.md", f"longer than {INSTRUCTION_CAP_BYTES:,} bytes")
    try:
        text = file.data.decode()
    except UnicodeDecodeError as error:
        yield Problem("instruction.md", f"not UTF-8 (byte {error.start})")
        return
    yield from _text("instruction.md", text)
    if not strip_canary(text).strip():
        yield Problem("instruction.md", "empty")


def _text(path: str, text: str) -> Iterator[Problem]:
    if "\0" in text:
        yield Problem(path, "contains a NUL character")
    if text.startswith("\ufeff"):
        yield _warning(path, "begins with a byte order mark")
    if "\x1b" in text:
        yield _warning(path, "contains terminal escape sequences")
    if _UNSEEN.search(text):
        yield _warning(path, "contains characters that nobody sees")


def _scripts(bundle: Bundle) -> Iterator[Problem]:
    for path in ("solution/solve.sh", "tests/test.sh"):
        file = bundle.by_path.get(path)
        if file is None or file.link is not None:
            continue
        first = file.data.split(b"\n", 1)[0]
        if first.startswith(b"#!") and first.endswith(b"\r"):
            yield _warning(path, "CRLF line ends: its interpreter will not be found")
        if file.data.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
            yield _warning(path, "begins with a byte order mark: it will not run")
