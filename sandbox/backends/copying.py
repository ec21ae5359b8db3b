"""What COPY and ADD take from a build context."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Mapping, Sequence

from sandbox.contracts import SandboxFile
from sandbox.errors import ImageBuildFailed, Refused
from sandbox.images import Step, expand

_ARCHIVE = re.compile(r"\.(tar|tgz|tbz2?|txz|tar\.\w+)$")


def sources_of(
    step: Step,
    sources: Sequence[str],
    context: Mapping[str, SandboxFile],
    variables: Mapping[str, str],
) -> tuple[list[SandboxFile], bool]:
    """The files that a COPY or ADD takes, with paths relative to its destination.

    The second value says whether it is one single file. Raises ImageBuildFailed for a source that
    is not there, Refused for what only Docker can take.
    """
    files: list[SandboxFile] = []
    is_single = len(sources) == 1
    inline = {re.sub("[\"']", "", mark): (mark, body) for mark, body in step.heredocs}
    for source in sources:
        if source in inline:
            mark, body = inline[source]
            if mark == source:  # without quotes, variables are filled in
                body = expand(body.decode(), variables).encode()
            files.append(SandboxFile(source.lstrip("<-").strip(), body))
            continue
        if re.match(r"[a-z]+://|git@", source):
            raise Refused(f"{step.where}: fetching from the network needs Docker")
        found = _matching(source, context)
        if not found:
            raise ImageBuildFailed(f"{step.where}: {source!r} is not in environment/")
        for file, is_file in found:
            is_single = is_single and is_file and len(found) == 1
            if is_file and step.keyword == "ADD" and _ARCHIVE.search(source):
                raise Refused(f"{step.where}: ADD of an archive needs Docker; use COPY")
            files.append(file)
    return files, is_single


def _matching(source: str, context: Mapping[str, SandboxFile]) -> list[tuple[SandboxFile, bool]]:
    plain = posixpath.normpath(source.lstrip("/"))
    if plain.startswith(".."):
        return []
    if plain == ".":
        return [(file, False) for file in context.values()]
    if plain in context:
        return [(_renamed(context[plain], posixpath.basename(plain)), True)]
    tops: dict[str, bool] = {}
    for path in context:
        parts = path.split("/")
        for count in range(1, len(parts) + 1):
            head = "/".join(parts[:count])
            if head == plain or _matches(head, plain):
                tops[head] = count == len(parts)
                break
    found: list[tuple[SandboxFile, bool]] = []
    for top, is_file in sorted(tops.items()):
        if is_file:
            found.append((_renamed(context[top], posixpath.basename(top)), True))
            continue
        inside = [p for p in context if p.startswith(f"{top}/")]
        found += [(_renamed(context[p], p[len(top) + 1 :]), False) for p in inside]
    return found


def _matches(path: str, pattern: str) -> bool:
    """Go's filepath.Match: a star stays inside one folder."""
    one, two = path.split("/"), pattern.split("/")
    pairs_of_names = zip(one, two, strict=False)
    return len(one) == len(two) and all(fnmatch.fnmatchcase(a, b) for a, b in pairs_of_names)


def _renamed(file: SandboxFile, path: str) -> SandboxFile:
    return SandboxFile(path, file.data, file.mode, file.link)
