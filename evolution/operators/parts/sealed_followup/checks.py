"""The answer to the sealed order is right."""

import json
import os

ANSWER = "/app/followup/answer.json"
EXPECTED: dict[str, object] = {}


def check_answer() -> None:
    """Every part of it, whatever its form."""
    assert os.path.isfile(ANSWER), f"{ANSWER} is not there"
    with open(ANSWER, "rb") as file:
        found = json.load(file)
    assert isinstance(found, dict), f"{ANSWER} is no JSON object"
    assert set(found) == set(EXPECTED), f"{ANSWER} has the keys {sorted(found)}"
    for name, value in EXPECTED.items():
        is_same = json.dumps(found[name], sort_keys=True) == json.dumps(value, sort_keys=True)
        assert is_same, f"{name} is not right"
