"""Length x dynamics: more work appears once a state is reached."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from dataclasses import replace

from evolution.composition import step_path
from evolution.contracts import Mutation, Statement, Subject
from evolution.directions import Aspect, Direction, Effect
from evolution.operators import dockerfile
from evolution.operators.base import Operator
from evolution.operators.followups import KINDS, Followup
from evolution.operators.inputs import DOCKERFILE, dockerfile_of, site, writing_refusal
from evolution.operators.outputs import outputs, outputs_refusal
from evolution.operators.wrapping import Draft, build, part, wrapping_refusal
from evolution.sequence import EditKind, Pair, SequenceEdit
from sandbox.contracts import SandboxFile

_FEWEST_BYTES = 20
_SHELL = """\
#!/bin/bash
# Opens the sealed order with the finished result, and does what it says.
set -euo pipefail

[ -e {place}/order.sealed ] || exit 0
here=${{0%.sh}}
opened=$(mktemp -d)
trap 'rm -rf "$opened"' EXIT
python3 -I -B "$here-open.py" "$opened"
mkdir -p {folder}
python3 -I -B "$here-work.py" "$opened/{file}" > {answer}
"""
_NAIVE = """\
#!/bin/bash
# Opens the sealed order with the bytes of the result as they are.
set -euo pipefail

[ -e {place}/order.sealed ] || exit 0
mkdir -p {folder}
echo "{{\\"key\\": \\"$(sha256sum {opener} | cut -d' ' -f1)\\"}}" > {answer}
"""


class SealedFollowup(Operator):
    """A sealed second order that opens only with the content of a finished result.

    Notch 1: the tool that opens it is there. Notch 2: only the format is described.
    """

    name = "sealed_followup"
    title = "A second order that only the first result opens"
    direction = Direction.LENGTH
    aspect = Aspect.DYNAMICS
    effect = Effect.SOLUTION
    notches = (1, 2)
    number = 85

    def applies_to(self, subject: Subject) -> str | None:
        """Refuses subjects without a result whose content is fixed enough to be a key."""
        reason = wrapping_refusal(self, subject) or outputs_refusal(subject)
        if reason:
            return reason
        if dockerfile_of(subject) is None:
            return "there is no Dockerfile that could be changed"
        if _opener(subject) is None:
            return "no result has a content that could serve as a key"
        return writing_refusal(subject)

    def apply(self, subject: Subject, notch: int, rng: random.Random) -> Mutation:
        """See `Operator.apply`."""
        reason = self.applies_to(subject)
        opener = _opener(subject)
        if reason or opener is None:
            raise ValueError(reason)
        context, place = site(subject, "sealed")
        _, folder = site(subject, "followup")
        answer = f"{folder}/answer.json"
        followup = rng.choice(KINDS)(rng)
        order = replace(followup, order=followup.order.replace("ANSWER", answer))
        nonce = rng.getrandbits(128).to_bytes(16, "big")
        environment = _sealed(opener, place, order, nonce, has_tool=notch == 1)
        path = step_path(self.number, self.name)
        stem = path.removesuffix(".sh")
        words = {"place": place, "folder": folder, "answer": answer, "opener": opener.path}
        constants = {"SOURCE": place, "OPENER": opener.path}
        steps = (
            SandboxFile(path, _SHELL.format(**words, file=followup.file).encode(), 0o755),
            SandboxFile(f"{stem}-open.py", part(self.name, "open.py", constants)),
            SandboxFile(f"{stem}-work.py", part(self.name, f"{followup.kind}.py")),
        )
        put = [SandboxFile(f"environment/{context}/{f.path}", f.data, f.mode) for f in environment]
        text = dockerfile.with_copy(dockerfile_of(subject) or "", context, place)
        mode = subject.bundle.by_path[DOCKERFILE].mode
        pair = Pair("a sealed order that the first result opens", followup.skill)
        expected = {"ANSWER": answer, "EXPECTED": followup.answer}
        draft = Draft(
            notch=notch,
            edit=SequenceEdit(EditKind.INSERT, len(subject.sequence), pair),
            statement=Statement(
                situation="With these results the case is not closed yet: a follow-up order lies "
                f"sealed in `{place}/order.sealed`, and opens only with the finished "
                f"`{opener.path}`, as `{place}/README` explains.",
                requirement="The sealed order is opened and carried out; its answer is written "
                f"to `{answer}`, in the form that the order gives.",
            ),
            why="A second piece of work exists that cannot even be read before the first is "
            "right, so the whole chain has to succeed in one go.",
            steps=steps,
            checks=part(self.name, "checks.py", expected).decode(),
            check_names=("answer",),
            artifacts=(answer,),
            facts=(("source", place), ("artifact", answer), ("opener", opener.path)),
            environment=(SandboxFile(DOCKERFILE, text.encode(), mode), *put),
            naive=(SandboxFile(path, _NAIVE.format(**words).encode(), 0o755),),
        )
        return build(self, subject, draft)


def _opener(subject: Subject) -> SandboxFile | None:
    """The result whose content makes the key: JSON without fractions if there is one."""
    ranked = []
    for file in outputs(subject):
        try:
            canonical(file.path, file.data)
        except ValueError:
            continue
        if len(file.data) >= _FEWEST_BYTES:
            is_json = file.path.endswith(".json")
            has_fractions = is_json and _has_fractions(json.loads(file.data))
            ranked.append((2 if has_fractions else 0 if is_json else 1, file))
    return min(ranked, key=lambda one: (one[0], one[1].path))[1] if ranked else None


def _has_fractions(value: object) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return any(_has_fractions(one) for one in value)
    return isinstance(value, float)


def canonical(path: str, data: bytes) -> bytes:
    """The content of a result without what its form leaves open. Raises ValueError if unreadable.

    JSON: sorted keys, no white space, ASCII. Other text: lines without white space at their ends,
    no empty lines at the end.
    """
    if path.endswith(".json"):
        return json.dumps(json.loads(data), sort_keys=True, separators=(",", ":")).encode()
    lines = [line.rstrip() for line in data.decode().split("\n")]
    return "\n".join(lines).rstrip("\n").encode()


def sealed(key: bytes, nonce: bytes, plain: bytes) -> bytes:
    """The bytes, exclusive-or a key stream of SHA-256 over key, nonce and block number."""
    blocks = -(-len(plain) // 32)
    stream = b"".join(
        hashlib.sha256(key + nonce + number.to_bytes(8, "big")).digest() for number in range(blocks)
    )
    return bytes(one ^ two for one, two in zip(plain, stream, strict=False))


def _sealed(
    opener: SandboxFile, place: str, order: Followup, nonce: bytes, *, has_tool: bool
) -> tuple[SandboxFile, ...]:
    """The sealed order with its README, and the tool if it is given."""
    plain = json.dumps({"order.txt": order.order, order.file: order.data}).encode()
    key = hashlib.sha256(canonical(opener.path, opener.data)).digest()
    container = {
        "nonce": nonce.hex(),
        "sha256": hashlib.sha256(plain).hexdigest(),
        "data": base64.b64encode(sealed(key, nonce, plain)).decode(),
    }
    form = part("sealed_followup", "json.txt" if opener.path.endswith(".json") else "text.txt")
    tool = part("sealed_followup", "tool.txt" if has_tool else "format.txt")
    readme = (form + b"\n" + tool).decode().replace("OPENER", opener.path).replace("PLACE", place)
    files = [
        SandboxFile("README", readme.encode()),
        SandboxFile("order.sealed", (json.dumps(container, indent=1) + "\n").encode()),
    ]
    if has_tool:
        files.append(SandboxFile("unseal.py", part("sealed_followup", "unseal.py")))
    return tuple(files)
