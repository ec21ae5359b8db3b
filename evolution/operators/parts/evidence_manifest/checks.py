"""Manifest and provenance agree with the results and the inputs as they are."""

import csv
import hashlib
import io
import json
import os

FOLDER = "/app/evidence"
OUTPUTS: list[str] = []
INPUTS: list[str] = []
IS_CHAINED = False


def content(path: str) -> bytes:
    """A file's bytes."""
    with open(path, "rb") as file:
        return file.read()


def results() -> dict[str, bytes]:
    """The results by path, in bytewise order."""
    found = {}
    for top in OUTPUTS:
        paths = [top] if os.path.isfile(top) else []
        for where, _, names in os.walk(top):
            paths += [os.path.join(where, name) for name in names]
        found.update({path: content(path) for path in paths})
    return {path: found[path] for path in sorted(found, key=str.encode)}


def flat(value: object) -> list[object]:
    """All leaves of a JSON document."""
    if isinstance(value, dict):
        value = list(value.values())
    return [leaf for one in value for leaf in flat(one)] if isinstance(value, list) else [value]


def values(path: str, data: bytes) -> set[str]:
    """The values that count."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return set()
    if path.endswith(".json"):
        found = flat(json.loads(text, parse_int=str, parse_float=str))
    elif path.endswith((".csv", ".tsv")):
        rows = csv.reader(io.StringIO(text), delimiter="\t" if path.endswith(".tsv") else ",")
        found = [cell for row in rows for cell in row]
    else:
        found = [line.strip() for line in text.split("\n")]
    return {
        one
        for one in found
        if isinstance(one, str) and len(one) >= 4 and not any(mark in one for mark in "\t\r\n")
    }


def rows(name: str) -> list[list[str]]:
    """The lines of one file, split at tabs."""
    path = f"{FOLDER}/{name}"
    assert os.path.isfile(path), f"{path} is not there"
    return [line.split("\t") for line in content(path).decode().rstrip("\n").split("\n")]


def compare(name: str, wanted: list[list[str]]) -> None:
    """The lines of one file are the wanted ones."""
    found = rows(name)
    for number, want in enumerate(wanted[: len(found)]):
        assert found[number] == want, f"{name} says {found[number]!r} instead of {want!r}"
    assert len(found) == len(wanted), f"{name} has {len(found)} lines, not {len(wanted)}"


def check_manifest() -> None:
    """One line for each result, in order."""
    wanted: list[list[str]] = []
    before = hashlib.sha256()
    for path, data in results().items():
        row = [path, str(len(data)), hashlib.sha256(data).hexdigest()]
        row.append(str(len(values(path, data))))
        if IS_CHAINED:
            row.append(before.hexdigest())
        before.update("\t".join(row).encode() + b"\n")
        wanted.append(row)
    assert wanted, "there are no results"
    compare("manifest.tsv", wanted)


def check_provenance() -> None:
    """One line for each value, with the place where it first occurs."""
    seen = {one for path, data in results().items() for one in values(path, data)}
    assert seen, "the results hold no values"
    texts = [(path, content(path).decode()) for path in INPUTS]
    wanted = []
    for value in sorted(seen, key=str.encode):
        places = ((path, text, text.find(value)) for path, text in texts)
        first = next(((p, t.count("\n", 0, at) + 1) for p, t, at in places if at >= 0), None)
        wanted.append([value, f"{first[0]}:{first[1]}" if first else "-"])
    compare("provenance.tsv", wanted)
