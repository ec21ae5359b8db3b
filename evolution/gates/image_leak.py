"""`image_leak`: is the solution, or its result, in the image as it was built?

`leak` reads the bundle's files. Here a command looks around in a fresh sandbox of the built image,
as a solver could: in all folders but the system's own, in compressed files, in git objects, in
variables. And what the reference solution delivers must not lie there ready-made, in a file that
the solution itself never opens.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from dataclasses import replace

from evolution.bundle import BundleError
from evolution.contracts import Evidence
from evolution.gates.answers import failed, inconclusive, machinery_fault, named, passed
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Steps
from evolution.gates.secrets import Secret, secrets_of
from evolution.gates.specs import command_spec, nop_asks, oracle_asks
from evolution.gates.unpacking import Unpacker
from sandbox.contracts import SandboxFile, Trace, TrialResult

GATE = "image_leak"
MARKS = 3
"""So many lines of a program stand for it; two in one place give it away."""
MARKS_PER_LINE = 4
"""The line itself, and how it looks in base64 at three offsets."""
SHORTEST_LINE = 20
SMALLEST_RESULT = 64
"""Shorter results may be equal by chance, in bytes."""
_DONE = "LOOKED AROUND"
_PROBE = f"""\
marks=/solution/marks
places=
for place in /*; do
    case $place in
    /proc|/sys|/dev|/solution|/usr|/lib|/lib32|/lib64|/libx32|/bin|/sbin|/boot|/run) ;;
    *) places="$places $place" ;;
    esac
done
seen() {{ while IFS= read -r line; do printf '%s\\t%s\\n' "$1" "$line"; done; }}
grep -rlaF -f $marks $places /usr/local 2>/dev/null | head -n 20 | while IFS= read -r path; do
    grep -aoF -f $marks "$path" 2>/dev/null | sort -u | head -n 20 | seen "$path"
done
find $places /usr/local -xdev -type f -name '*.gz' -size -4096 2>/dev/null | head -n 200 |
while IFS= read -r path; do
    gzip -dc "$path" 2>/dev/null | grep -aoF -f $marks | sort -u | head -n 20 | seen "$path"
done
if command -v git >/dev/null; then
    find $places -xdev -type d -name .git 2>/dev/null | head -n 20 | while IFS= read -r path; do
        git -c safe.directory='*' -C "$path" cat-file --batch-all-objects --batch 2>/dev/null |
            grep -aoF -f $marks | sort -u | head -n 20 | seen "$path"
    done
fi
{{ env; tr '\\0' '\\n' < /proc/1/environ; }} 2>/dev/null | grep -aoF -f $marks | sort -u |
    seen 'a variable'
echo '{_DONE}'
"""


def check(case: Case) -> Steps:
    """Look around in the image, and compare its files with the delivered result."""
    try:
        oracle, nop = yield oracle_asks(case)[0], nop_asks(case)[0]
    except BundleError as error:
        return inconclusive(GATE, f"no reference solution is at hand: {error}")
    if fault := machinery_fault((oracle, nop)):
        return inconclusive(GATE, fault)
    secrets = secrets_of(case.bundle)
    marks = marks_of(secrets)
    evidence = list(_ready_made(case, oracle, nop))
    if marks:
        spec = command_spec(case.bundle, "bash /solution/probe.sh")
        lines = "".join(f"{text}\n" for text in sorted(marks))
        files = (
            SandboxFile("marks", lines.encode("utf-8", "replace")),
            SandboxFile("probe.sh", _PROBE.encode(), 0o755),
        )
        ask = Ask(replace(spec, solver=replace(spec.solver, files=files)), "look_around")
        (result,) = yield (ask,)
        if fault := machinery_fault((result,)):
            return inconclusive(GATE, fault, evidence)
        output = result.solver_output.decode("utf-8", "replace")
        if _DONE not in output:
            return inconclusive(GATE, "the search in the image did not come to its end", evidence)
        evidence += _given_away(output, marks)
    figures = {"programs": float(len(secrets)), "found": float(len(evidence))}
    if evidence:
        more = f" (and {len(evidence) - 1} more)" if len(evidence) > 1 else ""
        return failed(GATE, f"{evidence[0].result}{more}", evidence, **figures)
    result_too = "and of the result " if _is_comparable(oracle) else ""
    unsaid = "" if result_too else "; the result was not looked for: what was read is not known"
    reason = f"nothing of {len(secrets)} programs {result_too}lies in the built image{unsaid}"
    return passed(GATE, reason, evidence, **figures)


def marks_of(secrets: Iterable[Secret]) -> dict[str, str]:
    """Telling lines, plain and in base64, each with the program that it stands for.

    A line that several programs share tells nothing.
    """
    owners: dict[str, set[str]] = {}
    lines = {s.path: {x.strip() for x in s.core.splitlines()} for s in secrets}
    for path, own in lines.items():
        for line in own:
            owners.setdefault(line, set()).add(path)
    marks: dict[str, str] = {}
    for path, own in lines.items():
        telling = [x for x in own if len(x) >= SHORTEST_LINE and owners[x] == {path}]
        for line in sorted(telling, key=lambda x: (-len(x), x))[:MARKS]:
            marks[line] = path
            marks.update((text, path) for text in _in_base64(line))
    return marks


def _in_base64(line: str) -> Iterator[str]:
    """How a line looks inside base64, wherever it begins: its middle, at three offsets."""
    data = line.encode("utf-8", "replace")
    for skip in range(3):
        part = data[skip : skip + (len(data) - skip) // 3 * 3]
        text = base64.b64encode(part).decode()
        if len(text) >= SHORTEST_LINE:
            yield text[:48]


def _given_away(output: str, marks: dict[str, str]) -> Iterator[Evidence]:
    """The programs of which two marks (or the only one) stand in one place."""
    known: dict[str, int] = {}
    for path in marks.values():
        known[path] = known.get(path, 0) + 1
    found: dict[tuple[str, str], set[str]] = {}
    for line in output.splitlines():
        place, _, text = line.partition("\t")
        if text in marks:
            found.setdefault((place, marks[text]), set()).add(text)
    for (place, path), texts in sorted(found.items()):
        if len(texts) >= min(2, known[path] // MARKS_PER_LINE):
            yield Evidence(
                label=f"{path}, in the image",
                result=f"{place} holds lines of {path}",
                last_lines="\n".join(sorted(texts)[:MARKS]),
                files=(place,),
            )


def _ready_made(case: Case, oracle: TrialResult, nop: TrialResult) -> Iterator[Evidence]:
    """Delivered files that lie in the environment, where the solution never looked."""
    trace = oracle.trace
    if trace is None or not _is_comparable(oracle):
        return
    before = {file.data for file in nop.state or ()}
    results = [
        file
        for file in oracle.state or ()
        if len(file.data.strip()) >= SMALLEST_RESULT and file.data not in before
    ]
    files = [(f.path, f.data) for f in case.bundle.folder("environment")]
    for blob in Unpacker().all_of(files):
        if _was_opened(blob.path, trace):
            continue
        for file in results:
            if file.data.strip() in blob.data:
                yield Evidence(
                    label=f"{file.path}, ready-made",
                    result=f"environment/{blob.place} holds the result {named([file.path])}",
                    files=(f"environment/{blob.path}",),
                )


def _is_comparable(oracle: TrialResult) -> bool:
    """Whether it is known what the result is, and what the solution read to make it."""
    return oracle.is_passed and oracle.trace is not None and not oracle.trace.is_blind


def _was_opened(path: str, trace: Trace) -> bool:
    """Whether the solution read a file that may be this one of the build context."""
    name = path.rsplit("/", 1)[-1]
    return any(one.rsplit("/", 1)[-1] == name for one in trace.read)
