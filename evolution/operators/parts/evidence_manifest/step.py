"""Write the manifest of the results, and trace their values back to the inputs."""

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

FOLDER = "/app/evidence"
OUTPUTS: list[str] = []
INPUTS: list[str] = []
IS_CHAINED = False


def result_files() -> list[Path]:
    """All results, in bytewise order of their paths."""
    found = []
    for top in map(Path, OUTPUTS):
        found += [top] if top.is_file() else [p for p in top.rglob("*") if p.is_file()]
    return sorted(found, key=bytes)


def leaves(value: Any) -> list[str]:
    """The strings and numbers anywhere in a parsed JSON document."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [leaf for item in value for leaf in leaves(item)]
    return [value] if isinstance(value, str) else []


def values_of(path: Path) -> set[str]:
    """The distinct values of one result that count."""
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        return set()
    if path.suffix == ".json":
        found = leaves(json.loads(text, parse_int=str, parse_float=str))
    elif path.suffix in (".csv", ".tsv"):
        mark = "\t" if path.suffix == ".tsv" else ","
        found = [cell for row in csv.reader(io.StringIO(text), delimiter=mark) for cell in row]
    else:
        found = [line.strip() for line in text.split("\n")]
    return {v for v in found if len(v) >= 4 and not set(v) & set("\t\r\n")}


def origin(value: str, texts: dict[str, str]) -> str:
    """The first place of a value in the inputs."""
    for path, text in texts.items():
        at = text.find(value)
        if at >= 0:
            return f"{path}:{text.count(chr(10), 0, at) + 1}"
    return "-"


def main() -> None:
    """Write both files."""
    texts = {path: Path(path).read_bytes().decode() for path in INPUTS}
    manifest, seen = "", set()
    for path in result_files():
        data, values = path.read_bytes(), values_of(path)
        digest = hashlib.sha256(data).hexdigest()
        columns = [str(path), str(len(data)), digest, str(len(values))]
        if IS_CHAINED:
            columns.append(hashlib.sha256(manifest.encode()).hexdigest())
        manifest += "\t".join(columns) + "\n"
        seen |= values
    lines = [f"{value}\t{origin(value, texts)}\n" for value in sorted(seen, key=str.encode)]
    folder = Path(FOLDER)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.tsv").write_bytes(manifest.encode())
    (folder / "provenance.tsv").write_bytes("".join(lines).encode())


main()
