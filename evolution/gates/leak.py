"""`leak`: can the solver reach the solution or the tests? Judged from the bundle's files.

Everything in `environment/` is looked at as it is and with every ordinary wrapping taken off:
archives, compression, base64, hex, other character sets, git objects (dangling ones too), compiled
Python, the Dockerfile's variables and labels. `image_leak` looks at the built image.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evolution.bundle import Bundle
from evolution.contracts import Evidence, GateResult
from evolution.gates.answers import failed, passed
from evolution.gates.case import Case
from evolution.gates.secrets import (
    Secret,
    answers_of,
    core_of,
    is_answer_like,
    is_compiled,
    secrets_of,
    shared_files,
    variables_of,
)
from evolution.gates.unpacking import Blob, Unpacker
from sandbox.contracts import SandboxFile

GATE = "leak"
MOST_FINDINGS = 20


def check(case: Case) -> GateResult:
    """Search what the solver is given for what it must not see; nothing is run."""
    bundle = case.bundle
    unpacker = Unpacker()
    secrets, answers, shared = secrets_of(bundle), answers_of(bundle), shared_files(bundle)
    evidence = list(_told(bundle))
    looked = 0
    for blob in unpacker.all_of(_given(bundle)):
        looked += 1
        if blob.data not in shared and len(evidence) < MOST_FINDINGS:
            evidence += _findings(blob, secrets, answers)
    figures = {"looked_at": float(looked), "secrets": float(len(secrets) + len(answers))}
    if evidence:
        first = evidence[0]
        more = f" (and {len(evidence) - 1} more)" if len(evidence) > 1 else ""
        return failed(GATE, f"{first.result}{more}", evidence, **figures)
    skipped = f"; too large to look into: {len(unpacker.skipped)}" if unpacker.skipped else ""
    evidence = [Evidence(label="not looked into", result=place) for place in unpacker.skipped[:5]]
    reason = f"nothing of solution or tests in {looked} contents that the solver gets{skipped}"
    return passed(GATE, reason, evidence, **figures)


def _given(bundle: Bundle) -> Iterator[tuple[str, bytes]]:
    """All that the solver is given: instruction, files of the image, variables."""
    yield "instruction.md", bundle.instruction.encode("utf-8", "surrogatepass")
    for file in bundle.folder("environment"):
        yield f"environment/{file.path}", file.data
    variables = bundle.config.get("environment", {})
    env = variables.get("env") if isinstance(variables, dict) else None
    if isinstance(env, dict):
        for name, value in env.items():
            yield f"task.toml [environment.env] {name}", str(value).encode()


def _findings(
    blob: Blob, secrets: Iterable[Secret], answers: Iterable[SandboxFile]
) -> Iterator[Evidence]:
    is_compiled_file = blob.place.endswith((".pyc", ".pyo"))
    core = "" if is_compiled_file else core_of(blob.data.decode("utf-8", "replace"))
    for secret in secrets:
        if is_compiled_file and is_compiled(secret, blob.data):
            yield _finding("compiled", secret.path, blob)
        elif core and secret.core in core:
            yield _finding("a copy", secret.path, blob)
    if is_answer_like(blob.place):
        for file in answers:
            if file.data.strip() in blob.data:
                yield _finding("a copy", f"tests/{file.path}", blob)


def _told(bundle: Bundle) -> Iterator[Evidence]:
    """Variables and labels that are called an answer, and whose value the tests know."""
    known = b"\n".join(file.data for file in bundle.folder("tests"))
    for name, value in variables_of(bundle):
        if value.encode("utf-8", "replace") in known:
            result = f"the variable or label {name} holds a value that the tests expect"
            yield Evidence(label=f"variable {name}", result=result)


def _finding(kind: str, secret: str, blob: Blob) -> Evidence:
    said = "holds" if kind == "a copy" else "is compiled from"
    return Evidence(
        label=f"{secret}, {kind}", result=f"{blob.place} {said} {secret}", files=(blob.path,)
    )
