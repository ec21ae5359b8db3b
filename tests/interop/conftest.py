"""Harbor itself, asked over a pipe."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.harbor_venv import harbor_python


class Harbor:
    """One process that answers questions with Harbor's own code."""

    def __init__(self) -> None:
        script = Path(__file__).with_name("harbor_answers.py")
        self._process = subprocess.Popen(
            [str(harbor_python()), "-I", str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, question: str, argument: Path | str) -> dict[str, Any]:
        """The answer, or a table with the key `error`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([question, str(argument)]) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=10)


@pytest.fixture(scope="session")
def harbor() -> Iterator[Harbor]:
    client = Harbor()
    yield client
    client.close()
