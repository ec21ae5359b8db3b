"""What a Dockerfile is built from, and whether it needs more than the classic builder."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sandbox.images import expand

_HEREDOC = re.compile(r"(?:^|\s)<<-?\s*[\"']?[A-Za-z_]\w*")
_FLAG = re.compile(r"^--([a-z-]+)(?:=(\S*))?\s+")


def base_images(dockerfile: bytes) -> tuple[str, ...]:
    """The images that must be here before the build: of FROM, and of COPY --from an image.

    Names that cannot be known before the build (an ARG without a default) are left out.
    """
    variables: dict[str, str] = {}
    stages: list[str] = []
    found: dict[str, None] = {}
    for keyword, text in _instructions(dockerfile):
        if keyword == "ARG" and not stages:
            name, equals, value = text.partition("=")
            variables[name.strip()] = expand(_unquoted(value), variables) if equals else ""
        elif keyword == "FROM":
            words = _flags(text)[1].split()
            if not words:
                continue
            name = expand(_unquoted(words[0]), variables)
            if name and name != "scratch" and name.lower() not in stages:
                found[name] = None
            is_named = len(words) == 3 and words[1].upper() == "AS"
            stages.append(words[2].lower() if is_named else f"\0{len(stages)}")
        elif keyword == "COPY":
            source = _flags(text)[0].get("from", "")
            if source and not source.isdecimal() and source.lower() not in stages:
                found[source] = None
    return tuple(found)


def needs_buildkit(dockerfile: bytes) -> str:
    """What of a Dockerfile only BuildKit understands; empty when there is nothing."""
    for keyword, text in _instructions(dockerfile):
        flags = _flags(text)[0]
        if keyword == "RUN" and flags.keys() & {"mount", "network", "security"}:
            return "RUN --" + next(iter(flags.keys() & {"mount", "network", "security"}))
        if keyword in ("COPY", "ADD") and flags.keys() - {"from", "chown"}:
            return f"{keyword} --{next(iter(flags.keys() - {'from', 'chown'}))}"
        if keyword in ("RUN", "COPY", "ADD") and _HEREDOC.search(text):
            return f"a here-document in {keyword}"
    return ""


def _instructions(dockerfile: bytes) -> Iterator[tuple[str, str]]:
    """Keyword and text of each instruction, continued lines joined, comments left out."""
    whole = ""
    for line in dockerfile.decode("utf-8", "replace").lstrip("\ufeff").splitlines():
        if line.lstrip().startswith("#") or (whole and not line.strip()):
            continue
        if line.rstrip().endswith("\\"):
            whole += line.rstrip()[:-1] + " "
            continue
        keyword, _space, text = (whole + line).strip().partition(" ")
        whole = ""
        if keyword:
            yield keyword.upper(), text.strip()


def _flags(text: str) -> tuple[dict[str, str], str]:
    flags: dict[str, str] = {}
    while match := _FLAG.match(text):
        flags[match[1]] = match[2] or ""
        text = text[match.end() :]
    return flags, text


def _unquoted(word: str) -> str:
    word = word.strip()
    return word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "\"'" else word
