"""Sound work on text and configuration."""

from __future__ import annotations

from random import Random

from bench.corpus.layout import Work
from bench.corpus.writing import (
    GOODS,
    NAMES,
    PLACES,
    WORDS,
    as_csv,
    as_json,
    as_lines,
    python,
    some,
)


def word_index(rng: Random) -> Work:
    """On which lines each word stands."""
    words = some(rng, WORDS, 9, 14)
    lines = [" ".join(rng.choice(words) for _ in range(rng.randint(3, 7))) for _ in range(30)]
    lines = [line.capitalize() + rng.choice((".", "!", ",")) for line in lines]
    index: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        for word in sorted(set(line.lower().strip(".!,").split())):
            index.setdefault(word, []).append(number)
    return Work(
        title="An index of words",
        instruction="""\
Write `/app/out/index.json` for `/app/data/text.txt`: an object from every word (in lower case,
without punctuation) to the sorted list of the numbers of the lines that hold it (from 1), each
number once.
""",
        data={"text.txt": as_lines(lines)},
        solve="mkdir -p out\n"
        + python("""
import json, re
index = {}
for number, line in enumerate(open("data/text.txt"), 1):
    for word in set(re.findall("[a-z]+", line.lower())):
        index.setdefault(word, []).append(number)
with open("out/index.json", "w") as target:
    json.dump(index, target)
"""),
        outputs={"/app/out/index.json": as_json(index)},
    )


def letters(rng: Random) -> Work:
    """A letter per person from a template."""
    people = [
        (name, rng.choice(PLACES).title(), rng.randint(10, 990)) for name in some(rng, NAMES, 6, 9)
    ]
    body = f"Dear {{name}},\n\nyour {rng.choice(GOODS)} has come to {{place}}.\n"
    body += "Please pay {sum} EUR.\n"
    return Work(
        title="Letters from a template",
        instruction="""\
Fill `/app/data/letter.txt` for every line of `/app/data/people.csv` (`name,place,sum`): `{name}`,
`{place}` and `{sum}` are replaced by that line's values. Write each letter to
`/app/out/<name>.txt`, the name in lower case.
""",
        data={
            "people.csv": as_csv([("name", "place", "sum"), *people]),
            "letter.txt": body.encode(),
        },
        solve=rng.choice(
            (
                """\
mkdir -p out
tail -n +2 data/people.csv | while IFS=, read -r name place sum; do
    sed "s/{name}/$name/g; s/{place}/$place/g; s/{sum}/$sum/g" data/letter.txt > "out/${name,,}.txt"
done
""",
                "mkdir -p out\n"
                + python("""
import csv
letter = open("data/letter.txt").read()
for row in csv.DictReader(open("data/people.csv")):
    with open("out/%s.txt" % row["name"].lower(), "w") as target:
        target.write(letter.format(**row))
"""),
            )
        ),
        outputs={
            f"/app/out/{n.lower()}.txt": body.format(name=n, place=p, sum=s).encode()
            for n, p, s in people
        },
        make=rng.choice(("shell", "functions")),
    )


def contents(rng: Random) -> Work:
    """A numbered table of contents."""
    lines, toc, major, minor, fenced = ["# Handbook"], [], 0, 0, False
    for _ in range(rng.randint(26, 36)):
        kind, title = rng.randint(0, 5), f"{rng.choice(WORDS)} {rng.choice(GOODS)}".capitalize()
        if kind == 0 or major == 0:
            major, minor = major + 1, 0
            lines += ["", f"## {title}"]
            toc.append(f"{major} {title}")
        elif kind in (1, 2):
            minor += 1
            lines += ["", f"### {title}"]
            toc.append(f"{major}.{minor} {title}")
        elif kind == 3:
            lines += ["", "```", f"## not a heading {title}", "```"]
        else:
            lines.append(f"Text about the {title.lower()}.")
    assert not fenced
    return Work(
        title="A table of contents",
        instruction="""\
Write `/app/out/contents.txt`: the headings of `/app/data/handbook.md` of the second and third level
(`##`, `###`), one per line, numbered like `2 Title` and `2.1 Title`. What stands between lines of
three back-ticks is code and holds no headings.
""",
        data={"handbook.md": as_lines(lines)},
        packages=("python3", "mawk"),
        solve="""\
mkdir -p out
awk '
    /^```/ { code = !code; next }
    code { next }
    /^## / { major++; minor = 0; sub(/^## /, ""); print major " " $0 }
    /^### / { minor++; sub(/^### /, ""); print major "." minor " " $0 }
' data/handbook.md > out/contents.txt
""",
        outputs={"/app/out/contents.txt": as_lines(toc)},
    )


def ini_to_json(rng: Random) -> Work:
    """Configuration read with defaults and comments."""
    defaults = {"timeout": str(rng.randint(5, 90)), "owner": rng.choice(NAMES).lower()}
    sections = {
        p: {rng.choice(GOODS): str(rng.randint(1, 999)) for _ in range(3)} for p in PLACES[:5]
    }
    for section in sections.values():
        if rng.random() < 0.5:
            section["timeout"] = str(rng.randint(100, 200))
    text = ["# defaults for all", "[DEFAULT]", *(f"{k} = {v}" for k, v in defaults.items())]
    for name, values in sections.items():
        text += ["", f"[{name}]", "; a section", *(f"{k}={v}" for k, v in values.items())]
    return Work(
        title="Configuration as JSON",
        instruction="""\
Convert `/app/data/service.ini` to `/app/out/service.json`: an object with one object per section
(not for `DEFAULT`) that holds all its keys with their values as text, those of `DEFAULT` included
where the section does not set them itself. Lines that begin with `#` or `;` are comments.
""",
        data={"service.ini": as_lines(text)},
        solve="mkdir -p out\n"
        + python("""
import configparser, json
parser = configparser.ConfigParser(interpolation=None)
parser.read("data/service.ini")
with open("out/service.json", "w") as target:
    json.dump({name: dict(parser[name]) for name in parser.sections()}, target, indent=4)
"""),
        outputs={"/app/out/service.json": as_json({n: defaults | v for n, v in sections.items()})},
    )


def edited_config(rng: Random) -> Work:
    """A configuration edited in place; the rest must stay as it was."""
    ports = {f"{w}.example": rng.randint(3000, 9000) for w in some(rng, WORDS, 4, 6)}
    before, after = ["# edited by hand", "worker_count 2;"], ["# edited by hand", "worker_count 8;"]
    old, new = f"10.0.0.{rng.randint(2, 100)}", f"10.0.1.{rng.randint(2, 100)}"
    for n, (host, port) in enumerate(ports.items()):
        back = old if n % 2 else f"10.0.2.{n + 5}"
        block = ["", "server {", f"    name {host};", f"    proxy http://{{}}:{port};", "}"]
        before += [line.format(back) if "proxy" in line else line for line in block]
        after += [
            line.format(new if back == old else back) if "proxy" in line else line for line in block
        ]
    before.append(f"# backend {old} is to be retired")
    after.append(f"# backend {old} is to be retired")
    return Work(
        title="A proxy's configuration",
        instruction=f"""\
Edit `/app/etc/proxy.conf`: `worker_count` becomes 8, and every `proxy` that leads to the backend
{old} leads to {new} instead, port unchanged. Comments and everything else stay as they are.
""",
        data={"proxy.conf": as_lines(before)},
        build=("RUN mkdir -p /app/etc && mv /app/data/proxy.conf /app/etc/proxy.conf",),
        artifacts=("/app/etc",),
        solve=f"""\
cd /app/etc
sed -i -E 's/^worker_count .*/worker_count 8;/; s#^( *proxy http://){old}:#\\1{new}:#' proxy.conf
""",
        outputs={"/app/etc/proxy.conf": as_lines(after)},
        make=rng.choice(("shell", "unittest", "runner")),
    )


def applied_hunks(rng: Random) -> Work:
    """Replacements by line numbers, from a list of edits."""
    lines = [f"{rng.choice(WORDS)} {rng.choice(GOODS)} {n}" for n in range(1, 31)]
    edits = []
    result: list[str | None] = list(lines)
    for at in sorted(rng.sample(range(1, 31), 9)):
        kind = rng.choice(("delete", "replace", "replace"))
        text = "" if kind == "delete" else f"{rng.choice(PLACES)} {at}"
        edits.append(f"{at} {kind} {text}".rstrip())
        result[at - 1] = text or None
    return Work(
        title="Edits by line",
        instruction="""\
Apply `/app/data/edits.txt` to `/app/data/original.txt` and write `/app/out/edited.txt`. An edit is
a line number of the original (from 1), then `delete`, or `replace` and the new text of that line.
Numbers always mean lines of the original. `/app/out/removed.txt` gets the original text of every
line that was deleted or replaced, in order.
""",
        data={"original.txt": as_lines(lines), "edits.txt": as_lines(edits)},
        solve="mkdir -p out\n"
        + python("""
lines = open("data/original.txt").read().splitlines()
removed, new = [], dict(enumerate(lines, 1))
for edit in open("data/edits.txt"):
    number, kind, *text = edit.rstrip("\\n").split(" ", 2)
    removed.append(lines[int(number) - 1])
    if kind == "delete":
        del new[int(number)]
    else:
        new[int(number)] = text[0]
with open("out/edited.txt", "w") as target:
    target.writelines(new[number] + "\\n" for number in sorted(new))
with open("out/removed.txt", "w") as target:
    target.writelines(line + "\\n" for line in removed)
"""),
        outputs={
            "/app/out/edited.txt": as_lines(line for line in result if line is not None),
            "/app/out/removed.txt": as_lines(lines[int(e.split()[0]) - 1] for e in edits),
        },
    )


def printed_report(rng: Random) -> Work:
    """A report whose form is laid down to the byte."""
    rows = [(g, rng.randint(1, 900), rng.randint(5, 9999)) for g in some(rng, GOODS, 8, 10)]
    lines = ["ARTICLE      PIECES     VALUE"]
    lines += [f"{g:<12}{n:>7}{n * c:>10}" for g, n, c in sorted(rows)]
    lines += [
        "-" * 29,
        f"{'total':<12}{sum(n for _, n, _ in rows):>7}{sum(n * c for _, n, c in rows):>10}",
    ]
    return Work(
        title="A printed report",
        instruction="""\
Print `/app/data/stock.csv` (`article,pieces,price`) to `/app/out/report.txt`, exactly as follows.
The first line is `ARTICLE      PIECES     VALUE`. Then a line per article, sorted by article: the
article left-justified in 12 characters, the pieces right-justified in 7, and pieces times price
right-justified in 10. Then a line of 29 dashes, and a line of the same form for `total`.
""",
        data={"stock.csv": as_csv([("article", "pieces", "price"), *rows])},
        packages=("python3", "gawk"),
        solve="""\
mkdir -p out
{
    echo 'ARTICLE      PIECES     VALUE'
    tail -n +2 data/stock.csv | LC_ALL=C sort | awk -F, '
        { printf "%-12s%7d%10d\\n", $1, $2, $2 * $3; n += $2; v += $2 * $3 }
        END { print "-----------------------------"; printf "%-12s%7d%10d\\n", "total", n, v }'
} > out/report.txt
""",
        outputs={"/app/out/report.txt": as_lines(lines)},
        make=rng.choice(("shell", "script")),
    )


def old_encodings(rng: Random) -> Work:
    """Texts in several encodings, all made UTF-8."""
    special = ("Zürich", "Tromsø", "Łódź", "Plzeň", "Århus", "Köln", "Győr", "Besançon")
    data, outputs = {}, {}
    names = []
    for n, word in enumerate(some(rng, WORDS, 5, 7)):
        codec = ("latin-1", "cp1250", "utf-16", "utf-8")[n % 4]
        fitting = [s for s in special if _fits(s, codec)]
        text = "".join(f"{n} {rng.choice(fitting)} {rng.choice(GOODS)} {k}\n" for k in range(5))
        data[f"in/{word}.txt"] = text.encode(codec)
        names.append(f"{word}.txt {codec}")
        outputs[f"/app/out/{word}.txt"] = text.encode()
    data["encodings.txt"] = as_lines(names)
    return Work(
        title="Texts in old encodings",
        instruction="""\
`/app/data/encodings.txt` names the files of `/app/data/in/` and the encoding of each. Write every
one of them as UTF-8 (without a byte order mark) to `/app/out/` under the same name.
""",
        data=data,
        solve="""\
mkdir -p out
while read -r name encoding; do
    python3 -X utf8 -c '
import sys
target, source, codec = sys.argv[1:]
open(target, "w").write(open(source, encoding=codec).read())
' "out/$name" "data/in/$name" "$encoding"
done < data/encodings.txt
""",
        outputs=outputs,
        is_embedded=True,
    )


def _fits(text: str, codec: str) -> bool:
    try:
        text.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


STYLES = (
    word_index,
    letters,
    contents,
    ini_to_json,
    edited_config,
    applied_hunks,
    printed_report,
    old_encodings,
)
"""From a random state to a sound work."""
