"""How a foreign `test.sh` begins: what it fetches before it judges, and whether we have it here.

Thousands of public tests start by fetching curl, uv and pytest. Where everything that a script
asks for is in the trusted toolchain, it is run with that instead (`sandbox.toolchain`); the
script's bytes stay as they are. Whatever is not understood for certain is refused by name, and
the script then runs as it is, with the network that the bundle asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from evolution.shell_commands import Command, Script, read_script
from sandbox.contracts import SandboxFile, ToolchainUse

PROVIDED = {"pytest": "8.4.1", "pytest-json-ctrf": "0.3.5"}
"""What the toolchain runs tests with, by name and version."""
EXTRAS = {"requests": "2.32.4", "pytest-timeout": "2.4.0"}
"""What it holds besides, for tests that ask for it."""
INSTALLERS = frozenset({"pip", "setuptools", "wheel", "uv"})

_SPECIFIER = re.compile(
    r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?\s*(?:(==|>=|~=|<=|!=|<|>)(.*))?"
)
_INSTALLER_URL = re.compile(
    r"https?://(astral\.sh/uv/([0-9.]+/)?install\.sh"
    r"|github\.com/astral-sh/uv/releases/\S*installer\.sh)"
)
_ANY_INSTALL = re.compile(r"astral\.sh|\b(pip3?|uv|pipx|poetry|conda)\s+(install|add)|\buvx\b")
_TALKS_OF_TESTS = re.compile(r"\b(pytest|uvx|pip3?)\b|astral\.sh")
_APT = frozenset({"curl", "wget", "ca-certificates"})
"""Packages that a preamble needs for nothing but fetching."""
_PYTHON = frozenset({"python", "python3"})
_VENV_PYTEST, _VENV_PYTHON = "/.venv/bin/pytest", "/.venv/bin/python"
_OTHER_INSTALLERS = frozenset({"pipx", "poetry", "conda", "npm", "yum", "apk", "dnf"})
_STARTERS = frozenset({"bash", "sh", "eval", "su", "sudo", "timeout", "env", "xargs", "exec"})
_VALUES = frozenset({"-p", "--python", "--index-url", "-i", "--default-index", "--prompt"})


@dataclass(frozen=True, slots=True)
class Preamble:
    """What a script fetches before it judges. Exactly one of `use` and `refusal` says something.

    `remarks` name where the toolchain is not what was asked for, one line each.
    """

    use: ToolchainUse | None = None
    refusal: str = ""
    remarks: tuple[str, ...] = ()


def recognise(files: Iterable[SandboxFile], script: str = "test.sh") -> Preamble | None:
    """The preamble of the tests (paths below `tests/`), or None when they fetch no pytest.

    `script` is the file that holds the original tests.
    """
    tree = {file.path: file for file in files}
    if script not in tree or tree[script].link is not None:
        return None
    try:
        text = tree[script].data.decode()
    except UnicodeDecodeError:
        return None
    reading = _Reading()
    reading.read(read_script(text))
    if not reading.is_preamble:
        return None
    others = [file.data for path, file in tree.items() if path != script]
    reading.conclude(text, others)
    if reading.problems:
        return Preamble(refusal=reading.problems[0])
    use = ToolchainUse(
        packages=tuple(sorted(reading.packages & EXTRAS.keys())),
        is_isolated=reading.is_isolated,
        is_apt_replaced=reading.apt <= _APT,
    )
    return Preamble(use, remarks=tuple(dict.fromkeys(reading.remarks)))


@dataclass
class _Reading:
    """What is known of a script while its commands are looked at in order."""

    packages: set[str] = field(default_factory=set)
    apt: set[str] = field(default_factory=set)
    programs: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    is_isolated: bool = False
    has_project: bool = False
    runs: int = 0
    fetches_uv: bool = False

    @property
    def is_preamble(self) -> bool:
        """Whether the script fetches pytest, or what would fetch it."""
        return self.fetches_uv or "pytest" in self.packages or "uv" in self.packages

    def read(self, script: Script) -> None:
        """Look at all commands."""
        for command in script.commands:
            self._command(_unwrapped(command))
        if not script.is_readable:
            self.problems.append("the script cannot be read to its end")
        for document in script.documents:
            if _ANY_INSTALL.search(document):
                self.fetches_uv = True
                self.problems.append("it installs something in a here-document")

    def conclude(self, text: str, others: list[bytes]) -> None:
        """What is only known at the end."""
        first = text.split("\n", 1)[0]
        if "bash" not in first:
            self.problems.append(f"it is run by {first[2:].strip() or 'no named shell'}, not bash")
        if not self.runs:
            self.problems.append("no pytest is started in the script itself")
        missing = sorted(self.packages - PROVIDED.keys() - EXTRAS.keys() - INSTALLERS)
        if missing:
            self.problems.append(f"the toolchain has no {', '.join(missing)}")
        for program in sorted(self.apt & {"curl", "wget"}):
            word = re.compile(rb"\b" + program.encode() + rb"\b")
            if program in self.programs or any(word.search(data) for data in others):
                self.apt.add(f"{program} for the tests themselves")

    def _command(self, command: Command) -> None:
        name, words = command.name, command.words
        set_names = {*command.assigned, *(word.split("=")[0] for word in words if name != "unset")}
        if "PYTEST_ADDOPTS" in set_names:
            self.problems.append("it sets PYTEST_ADDOPTS")
        if name in ("apt-get", "apt"):
            self._apt(words[1:])
        elif name in ("curl", "wget"):
            self._fetch(words)
        elif name in ("pip", "pip3"):
            self._pip(words[1:])
        elif name in _PYTHON and words[1:3] == ("-m", "pip"):
            self._pip(words[3:])
        elif name == "pytest" or (name in _PYTHON and words[1:3] == ("-m", "pytest")):
            self.runs += 1
        elif name == "uvx":
            self._run(words[1:])
        elif name == "uv":
            self._uv(words[1:])
        else:
            self._other(name, words)

    def _other(self, name: str, words: tuple[str, ...]) -> None:
        self.programs.append(name)
        base = name.rsplit("/", 1)[-1]
        if self.has_project and f"/{name}".endswith((_VENV_PYTEST, _VENV_PYTHON)):
            if base == "python" and words[1:3] != ("-m", "pytest"):
                self.problems.append(f"it starts {' '.join(words[:2])}")
            self.runs += 1
        elif base in _PYTHON and ("pytest" in words or "pip" in words):
            self.problems.append(f"pytest or pip is started by {' '.join(words[:3])}")
        elif name in _OTHER_INSTALLERS:
            self.problems.append(f"it uses {name}")
        elif name in _STARTERS and any(_TALKS_OF_TESTS.search(word) for word in words[1:]):
            self.problems.append(f"pytest or an installer is started through {name}")
        elif name != base and base in ("pip", "pip3", "pytest", "uv", "uvx"):
            self.problems.append(f"it starts {name} by its path")

    def _apt(self, words: tuple[str, ...]) -> None:
        plain = [word for word in words if not word.startswith("-")]
        if plain[:1] == ["install"]:
            self.apt.update(re.split(r"[=:/]", word)[0] for word in plain[1:])
        elif plain[:1] not in (["update"], ["clean"], ["autoremove"], []):
            self.problems.append(f"it runs apt-get {plain[0]}")

    def _fetch(self, words: tuple[str, ...]) -> None:
        urls = [word for word in words if "://" in word]
        if urls and all(_INSTALLER_URL.fullmatch(url) for url in urls):
            self.fetches_uv = True
            return
        self.programs.append(words[0])
        if any("uv" in url and "astral" in url for url in urls):
            self.fetches_uv = True
            self.problems.append(f"it fetches uv from {urls[0]}")

    def _pip(self, words: tuple[str, ...]) -> None:
        """`pip install …` after its own name."""
        if words[:1] != ("install",):
            if words and not words[0].startswith("-") and words[0] in ("download", "wheel"):
                self.problems.append(f"it runs pip {words[0]}")
            return
        self._require(words[1:])

    def _require(self, words: Iterable[str]) -> None:
        """Take requirements among the options of an installing command."""
        is_value = False
        for word in words:
            if is_value or word.startswith("-"):
                if word in ("-r", "--requirement", "-e", "--editable", "-c", "--constraint"):
                    self.problems.append(f"it installs what a file or folder says ({word})")
                is_value = not is_value and word in _VALUES | {"-t", "--target", "--prefix"}
                continue
            self._package(word)

    def _package(self, text: str) -> None:
        match = _SPECIFIER.fullmatch(text.strip())
        if match is None:
            self.problems.append(f"it installs {text!r}, which is no plain requirement")
            return
        name = re.sub(r"[-_.]+", "-", match[1]).lower()
        self.packages.add(name)
        have = {**PROVIDED, **EXTRAS}.get(name)
        if have and match[3] and (match[3], match[4].strip()) != ("==", have):
            self.remarks.append(f"the tests ask for {text.strip()}; {name} {have} is used")

    def _uv(self, words: tuple[str, ...]) -> None:
        words = tuple(_after_flags(words))
        verb = words[:2]
        if verb[:1] in (("init",), ("venv",)):
            self.has_project = self.is_isolated = True
        elif verb[:1] == ("add",):
            self._require(words[1:])
            self.has_project = True
        elif verb == ("pip", "install"):
            self._require(words[2:])
        elif verb == ("tool", "run"):
            self._run(words[2:])
        elif verb == ("tool", "install"):
            self._require(words[2:])
            self.is_isolated = True
        elif verb[:1] == ("run",):
            self._run(words[1:], is_project=True)
        elif verb[:1] != ("python",) and words and not words[0].startswith("-"):
            self.fetches_uv = True
            self.problems.append(f"it runs uv {words[0]}")

    def _run(self, words: tuple[str, ...], *, is_project: bool = False) -> None:
        """`uvx` or `uv run`: options, then what is started."""
        rest = list(words)
        asked = 0
        while rest and rest[0].startswith("-"):
            option, _, value = rest.pop(0).partition("=")
            if option in ("-w", "--with", "--from") and (value or rest):
                for part in (value or rest.pop(0)).split(","):
                    self._package(part)
                asked += 1
            elif option in ("--with-requirements", "--with-editable", "--project", "--directory"):
                self.problems.append(f"it starts uv with {option}")
            elif option in _VALUES and not value and rest:
                rest.pop(0)
        started = rest[0].split("@")[0] if rest else ""
        is_pytest = started in ("pytest", "py.test") or (
            started in _PYTHON and rest[1:3] == ["-m", "pytest"]
        )
        if not is_pytest:
            self.problems.append(f"uv starts {started or 'nothing'}, not pytest")
            return
        if rest[0].startswith("pytest@"):
            self._package(rest[0].replace("@", "==", 1))
        if is_project and not (self.has_project or asked):
            self.problems.append("uv runs pytest in a project of the environment's own")
        self.packages.add("pytest")
        self.is_isolated = True
        self.runs += 1


def _unwrapped(command: Command) -> Command:
    """Without `timeout N` before it: the programs that it starts are found on PATH alike."""
    words = list(command.words)
    if words[:1] == ["timeout"]:
        rest = words[1:]
        while rest and rest[0].startswith("-"):
            rest = rest[2:] if rest[0] in ("-k", "-s", "--signal", "--kill-after") else rest[1:]
        if rest[1:2] and rest[1] in ("uv", "uvx", "pytest"):
            return Command(tuple(rest[1:]), command.assigned)
    return command


def _after_flags(words: tuple[str, ...]) -> list[str]:
    """uv's words without the flags before its verb."""
    rest = list(words)
    while rest and rest[0] in ("-q", "--quiet", "-v", "--verbose", "--no-cache", "-n", "--offline"):
        rest.pop(0)
    return rest
