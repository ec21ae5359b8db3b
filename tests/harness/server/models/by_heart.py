"""The seeds' solutions, known by heart: how the competent model solves what it is told to solve."""

from __future__ import annotations

from evolution.bundle import Bundle
from tests.harness.server.models import hands
from tests.harness.server.models.parts import answer, data
from tests.harness.server.wire import Ask, Reply


def seed_of(ask: Ask) -> Bundle | None:
    """The seed whose instruction was quoted or told."""
    text = _squeezed(ask.text)
    return next((one for one in hands.seeds() if _squeezed(one.instruction) in text), None)


def solve(ask: Ask) -> Reply:
    """Put the solution where it wants to be, and run it; then stop."""
    seed = seed_of(ask)
    if seed is None or ask.results:
        return answer(ask, text="The work is done." if ask.results else "I do not know how.")
    files = [file for file in seed.files if file.path.startswith("solution/")]
    command = hands.write_commands(files, (), "/tmp")
    run = "cp -r /tmp/solution / 2>/dev/null; bash /solution/solve.sh"
    return Reply(calls=(hands.shell(ask, f"{command}\n{run}"),))


def write_solution(ask: Ask) -> Reply:
    """Write the solution into the bundle."""
    seed = seed_of(ask)
    if seed is None:
        return answer(ask, refusal="the tests ask for what nobody could know")
    if ask.results:
        return answer(ask, summary="As the seed has it.")
    files = [file for file in seed.files if file.path.startswith("solution/")]
    return Reply(calls=(hands.shell(ask, hands.write_commands(files, (), "/bundle")),))


def diagnose(ask: Ask) -> Reply:
    """What an environment is that nobody passed, by the first attempt that tells."""
    told = {label: text for label, text in data(ask.text).items() if label.startswith("attempt ")}
    for label, text in told.items():
        line = next(iter(text.splitlines()), "")
        if "the machinery broke" in line:
            return answer(ask, kind="infrastructure", quote=line, reason="nothing was judged")
        if label.endswith("reference solution") and "reward 1" not in line:
            return answer(ask, kind="broken_oracle", quote=line, reason="its own solution fails")
    for text in told.values():
        line = next(iter(text.splitlines()), "")
        if "reward 0" in line:
            return answer(ask, kind="unsolved", quote=line, reason="the work was not done")
    return answer(ask, kind="unclear", quote="", reason="no attempt tells")


def _squeezed(text: str) -> str:
    return " ".join(text.split())
