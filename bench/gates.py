"""Whether the gates are right: defects that they catch, sound environments that they let pass.

    .venv/bin/python bench/gates.py --share 0.1
    .venv/bin/python bench/gates.py --corpus FOLDER --json
    .venv/bin/python bench/gates.py --curve 600

Without `--corpus`, the corpus is made by code: sound environments in many styles, and the same with
one defect put in. Every gate of the full protocol is asked of the sound ones; a defect is caught
when any gate fails, and its matrix ends there unless `--whole`. What is inconclusive is not caught.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench import ways
from bench.cases import BenchError
from bench.corpus.builtin import built_in
from bench.corpus.entries import Entry, read_corpus, shared_out
from bench.corpus.held_out import held_out
from bench.curve import DEPTHS, curve
from bench.processes import core_seconds, tree_below
from bench.scoring import Answer, false_alarms, judge_all, per_gate, per_kind, recall
from bench.table import table
from evolution import execution
from evolution.bundle import BundleError
from sandbox.base import TrialRunner
from sandbox.errors import SandboxError
from sandbox.trial import Runner


def prepare(entries: Sequence[Entry], runner: TrialRunner) -> None:
    """Build the images, so that no figure holds a build; gates tell what does not build."""
    for entry in entries:
        try:
            runner.prepare(execution.image_spec(entry.bundle))
        except (BundleError, SandboxError):
            continue


def tell(answer: Answer) -> None:
    """One line on standard error for every matrix, more where an answer is wrong."""
    verdict = "WRONG" if answer.is_wrong else "right"
    said = f"failed: {', '.join(answer.failed) or '-'}"
    if answer.inconclusive:
        said += f"; inconclusive: {', '.join(answer.inconclusive)}"
    head = f"{verdict}  {answer.entry.label:<20} {answer.entry.name:<40} {answer.entry.origin:<9}"
    print(f"{head}{answer.seconds:6.1f} s  {said}", file=sys.stderr)
    if answer.is_wrong:
        if answer.entry.about:
            print(f"       {answer.entry.about}", file=sys.stderr)
        for gate in answer.gates:
            if gate.gate in (*answer.failed, *answer.inconclusive):
                print(f"       {gate.gate}: {gate.reason}", file=sys.stderr)


def score(
    entries: Sequence[Entry], runner: TrialRunner, jobs: int, *, is_short: bool
) -> tuple[list[Answer], dict[str, Any]]:
    """Judge all; the answers, and the figures for JSON. The sound ones are judged by themselves."""
    sound = [entry for entry in entries if entry.is_sound]
    others = [entry for entry in entries if not entry.is_sound]
    prepare(entries, runner)
    before = _cores()
    answers = judge_all(sound, runner, jobs, tell, is_short=is_short)
    cores = _cores() - before
    count = len(sound)
    sandboxes = sum(answer.sandboxes for answer in answers)
    answers += judge_all(others, runner, jobs, tell, is_short=is_short)
    caught, alarms = recall(answers), false_alarms(answers)
    return answers, {
        "recall": caught.share,
        "false_alarms": alarms.count,
        "sound": count,
        "defects": len(others),
        "recall_interval": caught.interval,
        "false_alarms_interval": alarms.interval,
        "core_seconds_per_matrix": round(cores / count, 2) if count else None,
        "sandboxes_per_matrix": round(sandboxes / count, 1) if count else None,
        "per_kind": per_kind(answers),
        "per_gate": per_gate(answers),
        "wrong": [answer.entry.name for answer in answers if answer.is_wrong],
    }


def _cores() -> float:
    """Seconds of a core that this process and all below it have used."""
    return sum(map(core_seconds, tree_below(os.getpid())))


def show(answers: Sequence[Answer], figures: dict[str, Any]) -> None:
    """The tables, for people."""
    heads = ["kind", "caught", "of", "95 % interval", "by", "inconclusive"]
    rows = [
        [
            kind,
            row["count"],
            row["of"],
            f"{row['low']:.0%} - {row['high']:.0%}",
            ", ".join(f"{gate} {count}" for gate, count in sorted(row["by"].items())),
            row["inconclusive"],
        ]
        for kind, row in figures["per_kind"].items()
    ]
    print(table(heads, rows))
    heads = ["gate", "defects", "false alarms", "inconclusive", "sandboxes", "core-s inside"]
    print(
        "\n"
        + table(
            heads,
            [
                [
                    gate,
                    row["defects"],
                    row["false_alarms"],
                    "{count}/{of}".format(**row["inconclusive"]),
                    row["sandboxes"],
                    row["core_seconds"],
                ]
                for gate, row in figures["per_gate"].items()
            ],
        )
    )
    print(f"\nrecall        {recall(answers)}\nfalse alarms  {false_alarms(answers)}")
    print(
        f"a full matrix: {figures['core_seconds_per_matrix']} core-seconds, "
        f"{figures['sandboxes_per_matrix']} sandboxes"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n\n")[0],
        epilog="Example: bench/gates.py --share 0.1 --kinds sound,leak --json",
    )
    parser.add_argument("--corpus", type=Path, help="a folder with a manifest; see docs/bench.md")
    parser.add_argument("--held-out", action="store_true", help="kinds that are scored alone")
    parser.add_argument("--share", type=float, default=1.0, help="of every label; 1 is all")
    parser.add_argument("--kinds", help="only these labels, separated by commas")
    parser.add_argument("--names", help="only entries whose name holds one of these texts")
    parser.add_argument("--jobs", type=int, default=2, help="matrices at once")
    parser.add_argument("--backend", default="bubblewrap", choices=ways.NAMES)
    parser.add_argument("--home", type=Path, help="where built images are kept")
    parser.add_argument("--whole", action="store_true", help="ask all gates of defects, too")
    parser.add_argument("--curve", type=int, metavar="TRIALS", help="the curve of flakes instead")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    return parser.parse_args()


def _wanted(asked: argparse.Namespace) -> tuple[Entry, ...]:
    """The entries that were asked for. Raises BenchError when there is none."""
    if asked.corpus and asked.held_out:
        raise BenchError("--corpus and --held-out are two corpora")
    made = held_out if asked.held_out else built_in
    entries = read_corpus(asked.corpus) if asked.corpus else made()
    if asked.kinds:
        kinds = asked.kinds.split(",")
        unknown = sorted(set(kinds) - {entry.label for entry in entries})
        if unknown:
            raise BenchError(f"no bundle is labelled {', '.join(unknown)}")
        entries = tuple(entry for entry in entries if entry.label in kinds)
    if asked.names:
        parts = asked.names.split(",")
        entries = tuple(e for e in entries if any(part in e.name for part in parts))
    if not 0 < asked.share <= 1 or asked.jobs < 1:
        raise BenchError("--share is above 0 and at most 1, --jobs at least 1")
    entries = shared_out(entries, asked.share)
    if not entries:
        raise BenchError("no bundle is left by --kinds and --names")
    return entries


def main() -> int:
    """Run and print. Ends with 1 when a sound one was flagged or a defect was not caught."""
    asked = _arguments()
    home = asked.home or ways.default_home()
    home.mkdir(parents=True, exist_ok=True)
    try:
        if asked.curve is not None and asked.curve < 1:
            raise BenchError(f"--curve takes 1 trial or more, not {asked.curve}")
        entries = () if asked.curve else _wanted(asked)
        with ways.opened(asked.backend, home) as backend:
            if asked.curve:
                points = curve(Runner(backend), asked.curve)
                print(table(list(points[0]), [list(point.values()) for point in points]))
                print(json.dumps({"trials": asked.curve, "depths": DEPTHS, "curve": points}))
                return 0
            answers, figures = score(entries, Runner(backend), asked.jobs, is_short=not asked.whole)
    except (BenchError, SandboxError) as error:
        print(f"gates: {error}", file=sys.stderr)
        return 2
    show(answers, figures)
    if asked.json:
        print(json.dumps(figures))
    return int(any(answer.is_wrong for answer in answers))


if __name__ == "__main__":
    sys.exit(main())
