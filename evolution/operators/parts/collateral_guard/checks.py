"""What the work was given is still as it was given."""

import hashlib
import os

FOLDERS: list[str] = []
EXPECTED: dict[str, str] = {}
RESTORED: list[str] = []


def check_untouched() -> None:
    """No file altered, removed or added."""
    altered, added, removed = [], [], set(EXPECTED) - set(RESTORED)
    for folder in FOLDERS:
        for where, _, names in sorted(os.walk(folder)):
            for name in sorted(names):
                path = os.path.join(where, name)
                if path in RESTORED:
                    continue
                if path not in EXPECTED:
                    added.append(path)
                    continue
                removed.discard(path)
                with open(path, "rb") as file:
                    if hashlib.sha256(file.read()).hexdigest() != EXPECTED[path]:
                        altered.append(path)
    assert not altered, f"altered: {', '.join(altered)}"
    assert not removed, f"removed: {', '.join(sorted(removed))}"
    assert not added, f"added: {', '.join(added)}"
