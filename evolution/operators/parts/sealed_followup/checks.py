"""The answer to the sealed order is right."""

import json
from pathlib import Path
from typing import Any

ANSWER = "/app/followup/answer.json"
EXPECTED: dict[str, Any] = {}


def check_answer() -> None:
    """Every part of it, whatever its form."""
    assert Path(ANSWER).is_file(), f"{ANSWER} is not there"
    found = json.loads(Path(ANSWER).read_bytes())
    assert isinstance(found, dict), f"{ANSWER} is no JSON object"
    assert set(found) == set(EXPECTED), f"{ANSWER} has the keys {sorted(found)}"
    for name, value in EXPECTED.items():
        is_same = json.dumps(found[name], sort_keys=True) == json.dumps(value, sort_keys=True)
        assert is_same, f"{name} is not right"
