"""Which files of a bundle are programs, and what programs ask of the machine that they run on."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from sandbox.contracts import SandboxFile

_ENDINGS = re.compile(
    r"\.(?:awk|bash|bats|cc?|cpp|cs|exs?|go|hpp?|hs|java|jl|m?js|kt|lua|mk|ml|php|p[lmsy]|ps1|r|rb|rs"
    r"|scala|sed|z?sh|swift|tcl|ts)$"
)
_NAMES = frozenset({"makefile", "gnumakefile", "dockerfile", "rakefile", "justfile"})

_AT = rb"(?m)(?:^|[|;&(`{!]|\b(?:then|do|else|exec|env)\b)[ \t]*(?:/usr)?(?:/bin/)?"
_ENDS = rb"(?=[ \t]*(?:$|[)|;&>`\"']|-[A-Za-z]))"
_STARTS = rb"\b(?:run|call|Popen|\w*output|system|popen|exec\w*)\(\[?[ \t]*[\"'](?:/usr)?(?:/bin/)?"
_HOST_NAME = re.compile(
    rb"\b(?:gethostname|getfqdn|platform\.(?:node|uname)|os\.uname)\b|\$\{?HOSTNAME\b"
    rb"|/etc/hostname\b|/proc/sys/kernel/hostname\b|" + _STARTS + rb"(?:hostname|uname)\b"
)
_HOST_NAME_SAID = re.compile(_AT + rb"(?:hostname" + _ENDS + rb"|uname[ \t]+-\w*[an])")
_USER_ID = re.compile(
    rb"\b(?:gete?[ug]id|getpass\.getuser|st_[ug]id)\b|\$\{?E?UID\b|"
    + _STARTS
    + rb"(?:id|whoami|logname)\b"
)
_USER_ID_SAID = re.compile(_AT + rb"(?:(?:id|whoami|logname)" + _ENDS + rb"|stat\b[^\n|;]*%[ugUG])")
_SWITCHES = re.compile(
    rb"\bset(?:res|re|e)?[ug]id\b|\b(?:setpriv|runuser|sudo|chown|useradd|adduser|gosu)\b|\buser="
    rb"|\bwww-data\b|\b(?:nginx|postgres|mysqld?|apache2?|sshd)\b"
)
_SWITCHES_SAID = re.compile(_AT + rb"su[ \t]+-?\w")
_NEEDS_ROOT = re.compile(
    rb"\b(?:apt|apt-get|dpkg|apk|yum|dnf|systemctl|service|mount|umount|chroot|passwd|groupadd"
    rb"|crontab|iptables)[ \t]"
)
_FILE_TIMES = re.compile(
    rb"[gm]etmtime|getctime|st_[mc]time|\butime\b|-(?:nt|ot)\b|-newer|-[mc](?:min|time)\b"
    rb"|%T@|\brsync\b|lastModified"
)
_FILE_TIMES_SAID = re.compile(
    rb"\bls[ \t]+(?:-\w+[ \t]+)*-\w*t|\bstat\b[^\n|;]*%[yYzZ]|\bdate\b[^\n|;]*[ \t]-r"
)
_LISTS = re.compile(rb"\b(?:listdir|scandir|iterdir|glob|rglob|walk)\(")
_LISTS_SAID = re.compile(rb"\bls[ \t]+-\w*[Uf]|\bfind[ \t]")
_SHELL = re.compile(rb"#![^\n]*sh\b")
_COMMENT = re.compile(rb"(?m)^[ \t]*#(?!!).*$")


def is_program(path: str, data: bytes) -> bool:
    """Whether a file is program text, by its name or its first two bytes."""
    name = posixpath.basename(path).lower()
    is_named = _ENDINGS.search(name) is not None or name in _NAMES
    return is_named or data.startswith(b"#!")


def asks_host_name(files: Iterable[SandboxFile]) -> bool:
    """Whether a program among these files asks the machine for its name; comments ask nothing."""
    return _is_asked(files, _HOST_NAME, _HOST_NAME_SAID)


def asks_user_id(files: Iterable[SandboxFile]) -> bool:
    """Whether a program among these files asks who it runs as, or who owns a file."""
    return _is_asked(files, _USER_ID, _USER_ID_SAID)


def switches_user(files: Iterable[SandboxFile]) -> bool:
    """Whether a program among these files works as, or for, another user than its own."""
    return _is_asked(files, _SWITCHES, _SWITCHES_SAID)


def needs_root(files: Iterable[SandboxFile]) -> bool:
    """Whether a program among these files calls what insists on being called by root."""
    return _is_asked(files, _NEEDS_ROOT, _NEEDS_ROOT)


def asks_file_times(files: Iterable[SandboxFile]) -> bool:
    """Whether a program among these files looks at times of files."""
    return _is_asked(files, _FILE_TIMES, _FILE_TIMES_SAID)


def lists_folders(files: Iterable[SandboxFile]) -> bool:
    """Whether a program among these files takes names from a folder as it lists them."""
    return _is_asked(files, _LISTS, _LISTS_SAID)


def _is_asked(
    files: Iterable[SandboxFile], word: re.Pattern[bytes], command: re.Pattern[bytes]
) -> bool:
    """Whether a program holds this word or, in the language of the shell, this command."""
    for file in files:
        if file.link is not None or not is_program(file.path, file.data):
            continue
        text = _COMMENT.sub(b"", file.data)
        is_shell = file.path.endswith((".sh", ".bash", "akefile", ".mk")) or _SHELL.match(text)
        if word.search(text) or (is_shell and command.search(text)):
            return True
    return False
