"""`alternatives`: do the tests accept other correct work?

Verifiers that are too strict are the commoner sin. Variants of the reference solution that differ
in nothing that was asked for have to pass: its steps started one by one, temporary files elsewhere
and left behind, the same JSON written otherwise, and sorted rows the other way round where nobody
asked for an order. What breaks on a variant breaks twice before it counts. Tables with all fields
quoted are reported only: whether that is the same is a matter of the instruction.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from evolution import execution
from evolution.bundle import Bundle, BundleError
from evolution.contracts import GateResult
from evolution.gates import row_order
from evolution.gates.answers import (
    failed,
    inconclusive,
    machinery_fault,
    named,
    observe,
    passed,
)
from evolution.gates.case import Case
from evolution.gates.desk import Ask, Steps
from evolution.gates.mutation.mutant import text_of
from evolution.gates.specs import nop_asks, oracle_asks, state_spec
from sandbox.contracts import SandboxFile, TrialResult, TrialSpec

GATE = "alternatives"
_FORM = re.compile(
    r"(?i)\b(sort(ed)? keys|sorted by key|keys (in|sorted)|indent\w*|canonical|byte[- ]for[- ]byte|"
    r"pretty|compact|minif\w+|white ?space|exactly as|one line|single line|per line|line by line|"
    r"ensure_ascii|trailing newline|final newline|bytes? long)\b"
)
"""Words by which an instruction says something about the form of a result."""
_SIZE = re.compile(
    r"(?i)\b((at most|no more than|up to|under|below|less than|fewer than|larger than|longer than"
    r"|limit|max\w*)\b[^.]{0,60}\b(bytes?|[km]i?b|characters|lines?)|[km]i?b or less"
    r"|(json|nd)[ -]?lines?|jsonl|ndjson)\b"
)
"""Words by which an instruction may say how much a result may be, or that it goes by lines."""
_BY_HAND = """\
cd /solution && found=no
for step in steps/*.sh; do
    [ -e "$step" ] || continue
    found=yes
    (cd - >/dev/null && bash -c "/solution/$step") || exit
done
cd - >/dev/null
[ "$found" = yes ] || bash -c /solution/solve.sh
"""
_ELSEWHERE = """\
mkdir -p /var/tmp/elsewhere /tmp/left-behind && export TMPDIR=/var/tmp/elsewhere
echo 'ls -l' >> ~/.bash_history; echo scratch > /tmp/left-behind/notes.txt; : > /tmp/.scratch
exec /solution/solve.sh
"""


@dataclass(frozen=True, slots=True)
class Variant:
    """Other correct work. `is_sure`: it says the same whatever the instruction asks for."""

    label: str
    spec: TrialSpec
    is_sure: bool = True


def check(case: Case) -> Steps:
    """Judge the variants; what breaks is judged again."""
    try:
        whole = oracle_asks(case)[0]
    except BundleError as error:
        return inconclusive(GATE, f"no reference solution can be varied: {error}")
    oracle, nop = yield whole, nop_asks(case)[0]
    if fault := machinery_fault((oracle, nop)):
        return inconclusive(GATE, fault)
    if not oracle.is_passed:
        return inconclusive(GATE, "the reference solution itself is not rewarded")
    variants = variants_of(case.bundle, oracle, nop)
    asks = tuple(Ask(one.spec, f"variant:{one.label}") for one in variants)
    results = yield asks
    again = {
        at: replace(ask, repetition=2)
        for at, (ask, result) in enumerate(zip(asks, results, strict=True))
        if not result.is_passed and machinery_fault((result,)) is None
    }
    repeated = dict(zip(again, (yield tuple(again.values())), strict=True)) if again else {}
    return judge(variants, asks, results, repeated)


def judge(
    variants: list[Variant],
    asks: tuple[Ask, ...],
    results: tuple[TrialResult, ...],
    repeated: dict[int, TrialResult],
) -> GateResult:
    """The gate's answer from the variants' results; those that broke ran again."""
    final = tuple(repeated.get(at, result) for at, result in enumerate(results))
    evidence = [
        observe(one.label, ask, result)
        for one, ask, result in zip(variants, asks, final, strict=True)
    ]
    broken = [
        (one, result)
        for one, result in zip(variants, final, strict=True)
        if not result.is_passed and machinery_fault((result,)) is None
    ]
    sure = [(one, result) for one, result in broken if one.is_sure]
    figures = {"variants": float(len(variants)), "refused": float(len(sure))}
    notes = [f"refused, too, and a matter of the instruction: {one.label}"
             for one, _ in broken if not one.is_sure]  # fmt: skip
    said = f"; {'; '.join(notes)}" if notes else ""
    if sure:
        one, result = sure[0]
        by = f" by {named(result.failed_checks)}" if result.failed_checks else ""
        more = f" (and {len(sure) - 1} more)" if len(sure) > 1 else ""
        reason = f"other correct work is refused{by}: {one.label}{more}{said}"
        return failed(GATE, reason, evidence, **figures)
    if fault := machinery_fault(final):
        return inconclusive(GATE, fault, evidence, **figures)
    count = len(variants) - len(broken)
    return passed(GATE, f"{count} variants of the work are accepted{said}", evidence, **figures)


def variants_of(bundle: Bundle, oracle: TrialResult, nop: TrialResult) -> list[Variant]:
    """The variants that this environment allows."""
    spec = execution.trial_spec(bundle, execution.oracle(bundle))
    found = [
        Variant("started step by step", _with_command(spec, _BY_HAND)),
        Variant("temporary files elsewhere, and some left behind", _with_command(spec, _ELSEWHERE)),
    ]
    if not spec.verifier.is_separate or not oracle.state:
        return found
    before = {(file.path, file.digest) for file in nop.state or ()}
    made = [f for f in oracle.state if (f.path, f.digest) not in before and f.link is None]
    is_free = _FORM.search(bundle.displayed_instruction) is None
    can_grow = is_free and _SIZE.search(bundle.displayed_instruction) is None
    rewritings: tuple[tuple[str, Callable[[SandboxFile], bytes | None], bool], ...] = (
        ("the same JSON, without white space", _spaced, is_free),
        ("the same JSON, keys in another order", _reordered, is_free),
        *((("the same JSON, indented", _indented, True),) if can_grow else ()),
        ("the same tables, all fields quoted", _quoted, False),
        ("the same rows in another order", lambda f: _turned_rows(bundle, f), True),
    )
    free_to_change = _unmentioned(made, oracle.state)
    for label, rewrite, is_sure in rewritings:
        state = _rewritten(oracle.state, free_to_change, rewrite)
        if state is not None:
            found.append(Variant(label, state_spec(bundle, state), is_sure))
    return found


def _with_command(spec: TrialSpec, command: str) -> TrialSpec:
    return replace(spec, solver=replace(spec.solver, command=command))


def _rewritten(
    state: tuple[SandboxFile, ...],
    targets: Iterable[SandboxFile],
    rewrite: Callable[[SandboxFile], bytes | None],
) -> tuple[SandboxFile, ...] | None:
    """The state with its files written otherwise; None when that changes nothing."""
    changed = {}
    for file in targets:
        data = rewrite(file)
        if data is not None and data != file.data:
            changed[file.path] = replace(file, data=data)
    return tuple(changed.get(file.path, file) for file in state) if changed else None


def _unmentioned(files: Iterable[SandboxFile], state: tuple[SandboxFile, ...]) -> list[SandboxFile]:
    """The files of which no other result holds a check sum: those are bound to their bytes."""
    texts = b"\n".join(file.data for file in state)
    return [
        file
        for file in files
        if not any(
            hashlib.new(name, file.data, usedforsecurity=False).hexdigest().encode() in texts
            for name in ("sha256", "sha1", "md5", "sha512")
        )
    ]


def _json_of(file: SandboxFile) -> object:
    """The value of a JSON object or list that can be written again as it was; else None."""
    text = text_of(file.data)
    if text is None or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text, parse_float=_same_number, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        return None


def _same_number(text: str) -> float:
    """A fraction that Python writes as it was written. Raises ValueError on others."""
    if repr(float(text)) != text:
        raise ValueError("would be written otherwise")
    return float(text)


def _without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object. Raises ValueError when a key is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _spaced(file: SandboxFile) -> bytes | None:
    """The same text without the white space between its tokens: never longer than it was."""
    if _json_of(file) is None:
        return None
    text = file.data.decode("utf-8", "surrogateescape")
    return _SPACE.sub(lambda match: match[1] or "", text).encode("utf-8", "surrogateescape")


_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')


def _reordered(file: SandboxFile) -> bytes | None:
    value = _json_of(file)
    if value is None:
        return None
    dumped = json.dumps(_turned(value), ensure_ascii=False, separators=(",", ":"))
    return dumped.encode("utf-8", "surrogatepass")


def _indented(file: SandboxFile) -> bytes | None:
    value = None if file.path.endswith((".jsonl", ".ndjson")) else _json_of(file)
    if value is None:
        return None
    return json.dumps(value, ensure_ascii=False, indent=3).encode("utf-8", "surrogatepass") + b"\n"


def _turned_rows(bundle: Bundle, file: SandboxFile) -> bytes | None:
    turned = row_order.turned(file)
    return turned if turned is not None and row_order.is_open(bundle, file) else None


def _turned(value: object) -> object:
    """The value with the keys of every object the other way round; lists keep their order."""
    if isinstance(value, dict):
        return {key: _turned(value[key]) for key in reversed(value)}
    return [_turned(one) for one in value] if isinstance(value, list) else value


def _quoted(file: SandboxFile) -> bytes | None:
    text = text_of(file.data) if file.path.endswith(".csv") else None
    if text is None or '"' in text:
        return None
    target = io.StringIO()
    csv.writer(target, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(
        csv.reader(io.StringIO(text))
    )
    return target.getvalue().encode()
