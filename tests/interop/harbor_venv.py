"""Harbor 0.26.0 in a virtual environment of its own, made once and kept under `var/`.

Run as a script, it makes the environment and prints its Python.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / "var" / "harbor-0.26.0"
HARBOR = "harbor==0.26.0"
NEEDED = (
    "pydantic==2.14.4",
    "toml==0.10.2",
    "pathspec==1.1.1",
    "shortuuid==1.0.13",
    "packaging==26.4",
)
"""What Harbor's models, parser and packager need; the rest of its 119 distributions they do not."""


def harbor_python() -> Path:
    """The Python that can import Harbor. Raises RuntimeError when it cannot be installed."""
    python = PLACE / "bin" / "python"
    if python.exists():
        return python
    PLACE.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix="harbor.", dir=PLACE.parent))
    try:
        _install(partial)
        partial.rename(PLACE)
    except OSError:
        if not python.exists():  # else another process was faster, and its copy is as good
            raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return python


def _install(folder: Path) -> None:
    uv = ROOT / ".venv" / "bin" / "uv"
    venv.create(folder, symlinks=True, with_pip=not uv.exists())
    python = str(folder / "bin" / "python")
    pip = [str(uv), "pip", "install", "--python", python] if uv.exists() else []
    pip = pip or [python, "-m", "pip", "install", "--disable-pip-version-check"]
    # Harbor last: by itself it would ask for everything that it could ever use.
    for wanted in (NEEDED, ("--no-deps", HARBOR)):
        command = [*pip, "--quiet", *wanted]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"Harbor cannot be installed: {done.stderr.strip()[-500:]}")


if __name__ == "__main__":
    sys.stdout.write(f"{harbor_python()}\n")
