"""Turn an export's spool files back into the plain text that they carry."""

import re
from pathlib import Path

SOURCE = "/app/export"
TARGET = "/app/data/input"

HEAD = re.compile(r"@segment (\d+)/(\d+) lines=(\d+)")
MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


def text_of(path: Path) -> str:
    """A spool file's text, by its byte order mark."""
    data = path.read_bytes()
    return data.decode(next((name for mark, name in MARKS if data.startswith(mark)), "utf-8"))


def segments_of(text: str) -> list[tuple[int, int, list[str]]]:
    """Number, announced length and lines of every segment, as they were sent."""
    found: list[tuple[int, int, list[str]]] = []
    for line in text.split("\r\n")[:-1]:
        head = HEAD.fullmatch(line)
        if head:
            found.append((int(head[1]), int(head[3]), []))
        else:
            found[-1][2].append(line)
    return found


def main() -> None:
    """Restore the file."""
    spools = sorted(Path(SOURCE).glob("*.spool-*"))
    if not spools:
        return
    sent = [segment for spool in spools for segment in segments_of(text_of(spool))]
    whole = {number: lines for number, announced, lines in sent if len(lines) == announced}
    lines = [line for number in sorted(whole) for line in whole[number]]
    Path(TARGET).parent.mkdir(parents=True, exist_ok=True)
    Path(TARGET).write_bytes("".join(f"{line}\n" for line in lines).encode())


main()
