"""Defects that running the oracle and doing nothing show: broken solutions, tests that pass all."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from bench.corpus.defects import (
    ROWS,
    Defect,
    first,
    judged_by,
    output_of,
    separate,
    texts,
    then,
)
from bench.corpus.harness import slug
from bench.corpus.layout import Work
from evolution.bundle import Bundle
from sandbox.contracts import SandboxFile


def _step(more: str, *, is_first: bool = False) -> Defect:
    """A defect that is a step of the solution too many."""
    put = first if is_first else then
    return Defect(more[:30], work=lambda work, rng: put(separate(work), more))


def _other_expectation(work: Work, rng: Random) -> Work:
    """What is expected differs in one digit or letter from what is right."""
    path, data = next(iter(work.outputs.items()))
    places = [at for at, byte in enumerate(data) if chr(byte).isdigit()] or [len(data) // 2]
    at = rng.choice(places)
    changed = b"7" if data[at : at + 1] != b"7" else b"8"
    return replace(separate(work), outputs={path: data[:at] + changed + data[at + 1 :]})


def _other_place(work: Work, rng: Random) -> Work:
    """The tests look for the result where nobody was told to put it."""
    path = output_of(work)
    wrong = path.replace("/app/out/", "/app/out/final/")
    return replace(separate(work), outputs={wrong: work.outputs[path]})


def _lines_ended_by_both(bundle: Bundle, work: Work, rng: Random) -> Bundle:
    script = bundle.text("solution/solve.sh")
    return texts(bundle, {"solution/solve.sh": script.replace("\n", "\r\n")})


def _other_interpreter(bundle: Bundle, work: Work, rng: Random) -> Bundle:
    script = bundle.text("solution/solve.sh").replace("#!/bin/bash", "#!/usr/bin/fish9", 1)
    return texts(bundle, {"solution/solve.sh": script})


def _broken_tests(bundle: Bundle, work: Work, rng: Random) -> Bundle:
    source = bundle.text("tests/test_outputs.py")
    return texts(bundle, {"tests/test_outputs.py": source + "\n\nassert OUTPUT_FOLDER\n"})


ORACLE_BROKEN = (
    _step("rm -rf /app/out/*"),
    _step("exit 0", is_first=True),
    _step("cd /app/dat", is_first=True),
    _step('for f in /app/out/*; do mv "$f" "$f.bak"; done'),
    _step("frobnicate --version", is_first=True),
    _step("if [ -e /app/data ]; then", is_first=True),
    _step("python3 /solution/prepare.py", is_first=True),
    _step("cat /tests/expected/* > /app/known", is_first=True),
    _step('for f in /app/out/*; do truncate -s -6 "$f"; done'),
    _step(': "${API_TOKEN:?is not set}"', is_first=True),
    _step('for f in /app/out/*; do tac "$f" > /tmp/turned; cp /tmp/turned "$f"; done'),
    Defect("another expectation", work=_other_expectation),
    Defect("another place", work=_other_place),
    Defect("lines ended by both", bundle=_lines_ended_by_both),
    Defect("another interpreter", bundle=_other_interpreter),
    Defect("broken tests", bundle=_broken_tests),
    Defect("not delivered", work=lambda w, rng: replace(separate(w), artifacts=("/app/results",))),
    Defect("nothing solved", work=lambda w, rng: replace(separate(w), solve="true")),
)


def _prepared(work: Work, rng: Random) -> Work:
    """The result is there before anything was done."""
    done = {f"done/{path.removeprefix('/app/out/')}": data for path, data in work.outputs.items()}
    build = ("RUN mkdir -p /app/out && cp -R /app/data/done/. /app/out/",)
    return replace(separate(work), data={**work.data, **done}, build=build)


def _checks(body: str, *, make: str = "functions") -> Defect:
    """Check functions of these bodies; {p} stands for the path, {w} for what is expected."""

    def spoil(work: Work, rng: Random) -> Work:
        path, data = next(iter(work.outputs.items()))
        source = body.format(p=repr(path), w=repr(data.decode()))
        return replace(
            separate(work), checks=f"import os\nimport unittest\n\n{source}\n", make=make
        )

    return Defect(body.strip().split("\n")[1].strip()[:30], work=spoil, styles=ROWS)


def _script(script: str) -> Defect:
    """Another `test.sh`; `@` stands for the path of the result, `~` for the expected file's."""

    def spoil(bundle: Bundle, work: Work, rng: Random) -> Bundle:
        path = output_of(work)
        text = script.replace("@", path).replace("~", f"/tests/expected/{slug(path)}")
        return judged_by(bundle, text)

    return Defect(script.strip()[:30], bundle=spoil, styles=ROWS)


_REWARD = "/logs/verifier/reward.txt"
NOP_PASSES = (
    _script(f"bash /tests/judge.sh\necho 1 > {_REWARD}"),
    _script(
        'for f in /app/out/*.bak; do grep -q wrong "$f" && bad=1; done\n'
        f"echo $((1 - bad)) > {_REWARD}"
    ),
    Defect("prepared", work=_prepared),
    _checks("def check_a():\n    if os.path.exists({p}):\n        assert open({p}).read() == {w}"),
    _checks("def check_a():\n    for f in os.listdir('/app'):\n        assert f != 'wrong'"),
    _checks(
        "def check_a():\n    try:\n        assert open({p}).read() == {w}\n"
        "    except OSError:\n        print('not there')"
    ),
    _script(
        f"if diff @ ~ | tee /logs/verifier/diff; then\n  echo 1 > {_REWARD}\n"
        f"else\n  echo 0 > {_REWARD}\nfi"
    ),
    _script(
        f"failures=0\ncmp @ ~ || failures=1\n"
        f'if [ "$failure" == 1 ]; then echo 0 > {_REWARD}; else echo 1 > {_REWARD}; fi'
    ),
    _checks("def check_a():\n    assert os.listdir('/app/data')"),
    _checks(
        "@unittest.skipUnless(os.path.exists({p}), 'nothing there')\n"
        "def check_a():\n    assert open({p}).read() == {w}",
        make="unittest",
    ),
    _script(f"grep -c . ~ > /logs/verifier/lines && echo 1 > {_REWARD}"),
)  # fmt: skip

MISSING_REWARD = (
    _script("bash /tests/judge.sh\nrm -f /logs/verifier/reward.txt"),
    _script(
        "bash /tests/judge.sh\nmkdir -p /logs/verify\nmv /logs/verifier/reward.txt /logs/verify/"
    ),
    _script(f"bash /tests/judge.sh\nsed -i 's/0/nan/' {_REWARD}"),
    _script(f"cmp -s @ ~ && echo passed > {_REWARD} || echo failed > {_REWARD}"),
    _script(f"set -e\nbash /tests/judge.sh\ngrep -q 1 {_REWARD} || rm {_REWARD}"),
    _script(f"bash /tests/judge.sh\n: > {_REWARD}"),
    _script("cmp -s @ ~"),
)
DISAGREEING = (
    _script("bash /tests/judge.sh\necho '{\"reward\": 0.5}' > /logs/verifier/reward.json"),
    _script("bash /tests/judge.sh\necho '{\"reward\": 0}' > /logs/verifier/reward.json"),
    _script(
        "bash /tests/judge.sh\n"
        "[ -e @ ] && echo '{\"reward\": 0.9}' > /logs/verifier/reward.json; true"
    ),
    _script("bash /tests/judge.sh\necho '{\"reward\": 1}' > /logs/verifier/reward.json"),
    _script(
        "bash /tests/judge.sh\n[ -e @ ] || echo '{\"reward\": 1}' > /logs/verifier/reward.json"
    ),
)


def _without(path: str) -> Defect:
    def spoil(bundle: Bundle, work: Work, rng: Random) -> Bundle:
        return bundle.with_files((), [path])

    return Defect(f"without {path}", bundle=spoil)


def _replaced(path: str, old: str, new: str, name: str = "") -> Defect:
    """Some text of a file exchanged."""

    def spoil(bundle: Bundle, work: Work, rng: Random) -> Bundle:
        return texts(bundle, {path: bundle.text(path).replace(old, new, 1)})

    return Defect(name or f"{path}: {new.strip()[:25]}", bundle=spoil)


def _link_outside(bundle: Bundle, work: Work, rng: Random) -> Bundle:
    return bundle.with_files([SandboxFile("tests/shared.py", link="../../../shared/shared.py")])


ILL_FORMED = (
    _without("instruction.md"),
    _without("tests/test.sh"),
    _replaced("task.toml", "[agent]", "[agent", "a broken table"),
    _replaced("task.toml", "timeout_sec = 60.0", 'timeout_sec = "soon"'),
    _replaced("task.toml", 'environment_mode = "separate"', 'environment_mode = "apart"'),
    Defect("a link outside", bundle=_link_outside),
)
NO_IMAGE = (
    _replaced("environment/Dockerfile", "COPY data/", "COPY files/"),
    _replaced("environment/Dockerfile", "WORKDIR /app", "RUN test -d /opt/vendor\nWORKDIR /app"),
    _replaced("environment/Dockerfile", "WORKDIR /app", "RUN make-keys --all\nWORKDIR /app"),
    _replaced(
        "environment/Dockerfile", "WORKDIR /app", "COPY entry.sh /usr/local/bin/\nWORKDIR /app"
    ),
    _replaced(
        "environment/Dockerfile", "WORKDIR /app", "RUN cp /opt/vendor.key /etc/key\nWORKDIR /app"
    ),
)
MISSING_TOOL = (
    _step("tabulate-csv --help >/dev/null", is_first=True),
    _script(f"pytest-9 /tests/test_outputs.py && echo 1 > {_REWARD} || echo 0 > {_REWARD}"),
    _script(f"assert-equal @ ~ && echo 1 > {_REWARD} || echo 0 > {_REWARD}"),
    _step("import-data /app/data || exit 3", is_first=True),
    _script(f"python2.6 /tests/collect.py && echo 1 > {_REWARD}"),
)
KINDS: dict[str, tuple[Defect, ...]] = {
    "oracle_broken": ORACLE_BROKEN,
    "nop_passes": NOP_PASSES,
    "missing_reward": MISSING_REWARD,
    "rewards_disagree": DISAGREEING,
    "ill_formed": ILL_FORMED,
    "no_image": NO_IMAGE,
    "missing_tool": MISSING_TOOL,
}
