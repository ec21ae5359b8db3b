"""Sound work on files, archives, modes and links."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zipfile
from random import Random

from bench.corpus.layout import Work
from bench.corpus.writing import (
    GOODS,
    PLACES,
    WORDS,
    as_csv,
    as_json,
    as_lines,
    as_tsv,
    python,
    some,
)


def _text(rng: Random, lines: int = 6) -> bytes:
    return as_lines(" ".join(rng.choice(WORDS) for _ in range(5)) for _ in range(lines))


def picked_members(rng: Random) -> Work:
    """Members of an archive that a list names, laid out under new names."""
    members = {f"{p}/{w}.txt": _text(rng) for p in PLACES[:4] for w in some(rng, WORDS, 4, 6)}
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        for path, data in members.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    wanted = rng.sample(sorted(members), rng.randint(5, 8))
    absent = [f"{rng.choice(PLACES)}/none{n}.txt" for n in range(3)]
    listed = [*wanted, *absent]
    rng.shuffle(listed)
    return Work(
        title="Members of an archive",
        instruction="""\
`/app/data/wanted.txt` names members of `/app/data/store.tar.gz`. Extract these into `/app/out/`,
each under its path with every `/` replaced by `_`, content unchanged. Names that the archive does
not hold go to `/app/out/absent.txt`, one per line, sorted.
""",
        data={
            "store.tar.gz": gzip.compress(target.getvalue(), mtime=0),
            "wanted.txt": as_lines(listed),
        },
        packages=("python3", "tar", "gzip"),
        solve="""\
mkdir -p out
: > out/absent.txt
LC_ALL=C sort data/wanted.txt | while IFS= read -r name; do
    if tar -tzf data/store.tar.gz "$name" >/dev/null 2>&1; then
        tar -xzOf data/store.tar.gz "$name" > "out/${name//\\//_}"
    else
        echo "$name" >> out/absent.txt
    fi
done
""",
        outputs={
            **{f"/app/out/{name.replace('/', '_')}": members[name] for name in wanted},
            "/app/out/absent.txt": as_lines(sorted(absent)),
        },
    )


def damaged_files(rng: Random) -> Work:
    """A list of check sums against what is there."""
    files = {f"{p}/{w}.dat": _text(rng, 3) for p in PLACES[:3] for w in some(rng, WORDS, 6, 8)}
    sums = {path: hashlib.sha256(data).hexdigest() for path, data in files.items()}
    names = sorted(files)
    rng.shuffle(names)
    bad, gone = sorted(names[:5]), sorted(names[5:9])
    for path in bad:
        files[path] = files[path].replace(b"a", b"o", 1) + b"!\n"
    data = {f"tree/{p}": d for p, d in files.items() if p not in gone}
    data |= {f"tree/{PLACES[0]}/extra{n}.dat": _text(rng) for n in range(3)}
    data["SHA256SUMS"] = as_lines(f"{sums[path]}  {path}" for path in sorted(sums))
    report = {
        "damaged": bad,
        "missing": gone,
        "unlisted": [f"{PLACES[0]}/extra{n}.dat" for n in range(3)],
        "intact": len(sums) - len(bad) - len(gone),
    }
    return Work(
        title="Check sums of a tree",
        instruction="""\
`/app/data/SHA256SUMS` lists the files of `/app/data/tree/` (paths relative to it). Write
`/app/out/report.json` with `damaged` (listed, other content), `missing` (listed, not there) and
`unlisted` (there, not listed), all sorted lists of paths, and `intact`: how many listed files are
as they should be.
""",
        data=data,
        solve="mkdir -p out\n"
        + python("""
import hashlib, json, os
root = "/app/data/tree"
sums = dict(reversed(line.split()) for line in open("/app/data/SHA256SUMS"))
there = {}
for folder, _, names in os.walk(root):
    for name in names:
        path = os.path.join(folder, name)
        with open(path, "rb") as source:
            digest = hashlib.sha256(source.read()).hexdigest()
        there[os.path.relpath(path, root)] = digest
damaged = sorted(p for p in sums if p in there and there[p] != sums[p])
missing = sorted(p for p in sums if p not in there)
report = {"damaged": damaged, "missing": missing, "unlisted": sorted(set(there) - set(sums)),
          "intact": len(sums) - len(damaged) - len(missing)}
with open("/app/out/report.json", "w") as target:
    json.dump(report, target, indent=2)
"""),
        outputs={"/app/out/report.json": as_json(report)},
    )


def same_content(rng: Random) -> Work:
    """Groups of files with equal content."""
    files: dict[str, bytes] = {}
    for group in range(rng.randint(6, 9)):
        data = f"{group} ".encode() + _text(rng, 2)
        for word in some(rng, WORDS, 1, 4):
            files[f"{rng.choice(PLACES)}/{word}-{group}"] = data
    files["empty/one"] = files["empty/two"] = b""
    groups: dict[bytes, list[str]] = {}
    for path in sorted(files):
        groups.setdefault(files[path], []).append(path)
    rows = sorted((g[0], len(g), len(d) * (len(g) - 1)) for d, g in groups.items() if len(g) > 1)
    return Work(
        title="Files with the same content",
        instruction="""\
Find the files below `/app/data/files/` that have the same content. Write `/app/out/groups.csv` with
the header `first,files,saved`: for every group of two or more equal files the path (below
`files/`) that comes first in order of text, how many files the group has, and the bytes that would
be saved if only one were kept. Sorted by `first`. Empty files count, too.
""",
        data={f"files/{path}": data for path, data in files.items()},
        solve="mkdir -p out\npython3 /solution/groups.py /app/data/files > /app/out/groups.csv",
        helpers={
            "groups.py": b"""\
import os
import sys

root = sys.argv[1]
groups = {}
for folder, _, names in os.walk(root):
    for name in names:
        path = os.path.join(folder, name)
        with open(path, "rb") as source:
            groups.setdefault(source.read(), []).append(os.path.relpath(path, root))
print("first,files,saved")
for first, count, saved in sorted(
    (min(paths), len(paths), len(data) * (len(paths) - 1)) for data, paths in groups.items()
):
    if count > 1:
        print(first, count, saved, sep=",")
"""
        },
        outputs={"/app/out/groups.csv": as_csv([("first", "files", "saved"), *rows])},
    )


def tidy_names(rng: Random) -> Work:
    """Copies under tidy names, clashes numbered, and a list of what became what."""
    names = [
        f"{rng.choice(WORDS).title()}{rng.choice((' ', '__', '-', '  '))}{rng.choice(GOODS)}"
        f"{rng.choice(('.TXT', '.txt', '.Txt'))}"
        for _ in range(rng.randint(14, 22))
    ]
    files = {name: _text(rng, 3) for name in names}
    made: dict[str, str] = {}
    for name in sorted(files):
        stem = "-".join(
            part for part in name[:-4].lower().replace("_", " ").replace("-", " ").split()
        )
        number, new = 1, f"{stem}.txt"
        while new in made.values():
            number += 1
            new = f"{stem}-{number}.txt"
        made[name] = new
    return Work(
        title="Tidy names",
        instruction="""\
Copy every file of `/app/data/scans/` to `/app/out/files/` under a tidy name: lower case, every run
of spaces, `_` and `-` in the stem made one `-`, the suffix `.txt`. Take the files in order of their
old names (as bytes); when a tidy name is taken already, the next ones get `-2`, `-3` and so on
before the suffix. Write `/app/out/names.json`: an object from old name to new name.
""",
        data={f"scans/{name}": data for name, data in files.items()},
        solve="mkdir -p out/files\n"
        + python("""
import json, os, re, shutil
made = {}
for name in sorted(os.listdir("data/scans"), key=os.fsencode):
    stem = re.sub(r"[ _-]+", "-", os.path.splitext(name)[0].lower())
    new, number = stem + ".txt", 1
    while new in made.values():
        number += 1
        new = "%s-%d.txt" % (stem, number)
    made[name] = new
    shutil.copyfile("data/scans/" + name, "out/files/" + new)
with open("out/names.json", "w") as target:
    json.dump(made, target, indent=1)
"""),
        outputs={
            "/app/out/names.json": as_json(made),
            **{f"/app/out/files/{made[name]}": files[name] for name in files},
        },
    )


_MODES = """

import stat


def check_modes():
    wanted = json.loads(%r)
    found = {}
    for folder, folders, names in os.walk("/app/site"):
        for name in names:
            path = os.path.join(folder, name)
            found[os.path.relpath(path, "/app/site")] = stat.S_IMODE(os.lstat(path).st_mode)
    wrong = sorted(path for path in wanted if found.get(path) != wanted[path])
    assert not wrong, "wrong modes: %%s" %% wrong[:3]
    assert sorted(found) == sorted(wanted), "files came or went"
"""


def site_modes(rng: Random) -> Work:
    """A tree whose modes are put right in place."""
    files = {f"{p}/{w}.html": _text(rng, 2) for p in PLACES[:3] for w in some(rng, WORDS, 2, 3)}
    files |= {f"bin/{g}.sh": f"#!/bin/sh\necho {g}\n".encode() for g in some(rng, GOODS, 2, 4)}
    files |= {f"private/{w}.key": _text(rng, 2) for w in some(rng, WORDS, 2, 3)}
    wanted = {
        p: 0o755 if p.startswith("bin/") else 0o600 if p.endswith(".key") else 0o644 for p in files
    }
    return Work(
        title="The modes of a site",
        instruction="""\
Put the modes of the files below `/app/site` right, and change nothing else there: 644, but those in
`bin` 755 and those in `private` 600. Then write `/app/out/modes.tsv`:
for every file (no folders) its mode in octal (three digits), a tab, and its path below the site,
sorted by path.
""",
        data={f"site/{path}": data for path, data in files.items()},
        build=(
            "RUN cp -R /app/data/site /app/site && chmod -R a+rwx /app/site && rm -rf /app/data",
        ),
        artifacts=("/app/site", "/app/out"),
        packages=("python3", "findutils"),
        solve="""\
cd /app/site
find . -type f -exec chmod 644 {} +
find bin -type f -exec chmod 755 {} +
find private -type f -exec chmod 600 {} +
mkdir -p /app/out
find . -type f -printf '%m\\t%P\\n' | LC_ALL=C sort -k2 > /app/out/modes.tsv
""",
        outputs={
            "/app/out/modes.tsv": as_tsv((f"{wanted[p]:o}", p) for p in sorted(files)),
            **{f"/app/site/{path}": data for path, data in files.items()},
        },
        more_checks=_MODES % json.dumps(wanted),
    )


_LINKS = """

def check_links():
    for name, target in json.loads(%r).items():
        path = "/app/out/" + name
        assert os.path.islink(path), "%%s is no link" %% path
        assert os.readlink(path) == target, "%%s leads to %%s" %% (path, os.readlink(path))
"""


def release_links(rng: Random) -> Work:
    """Links to the newest release of each program."""
    rows, links = [], {}
    for good in some(rng, GOODS, 5, 7):
        releases = {(rng.randint(0, 3), rng.randint(0, 12)) for _ in range(rng.randint(2, 5))}
        rows += [f"{good}-{a}.{b}" for a, b in releases]
        a, b = max(releases)
        links[good] = f"../data/releases/{good}-{a}.{b}"
    rng.shuffle(rows)
    table = [(name, links[name].rsplit("-", 1)[1]) for name in sorted(links)]
    return Work(
        title="Links to the newest releases",
        instruction="""\
`/app/data/releases/` holds folders like `anvil-1.12`: program, `-`, major and minor number. For
every program make a symbolic link `/app/out/<program>` that leads to
`../data/releases/<program>-<its newest release>` (numbers compare as numbers: 1.10 is newer than
1.9), and write `/app/out/newest.csv` with the header `program,release`, sorted by program.
""",
        data={f"releases/{row}/about.txt": f"This is {row}\n".encode() for row in rows},
        solve="""\
mkdir -p out
echo program,release > out/newest.csv
for program in $(ls data/releases | sed 's/-[^-]*$//' | LC_ALL=C sort -u); do
    newest=$(ls data/releases | grep "^$program-" | sed 's/.*-//' |
        sort -t. -k1,1n -k2,2n | tail -n 1)
    ln -sfn "../data/releases/$program-$newest" "out/$program"
    echo "$program,$newest" >> out/newest.csv
done
""",
        outputs={"/app/out/newest.csv": as_csv([("program", "release"), *table])},
        more_checks=_LINKS % json.dumps(links),
    )


def zipped_sheets(rng: Random) -> Work:
    """Numbers added up over the members of a zip archive."""
    target, sums = io.BytesIO(), {}
    with zipfile.ZipFile(target, "w") as archive:
        for place in some(rng, PLACES, 6, 8):
            values = [rng.randint(1, 400) for _ in range(rng.randint(5, 12))]
            entry = zipfile.ZipInfo(f"sheets/{place}.csv", (2025, 1, 1, 0, 0, 0))
            archive.writestr(entry, as_csv([("day", "sold"), *enumerate(values, 1)]))
            sums[place] = {"days": len(values), "sold": sum(values), "best": max(values)}
    return Work(
        title="Sheets in an archive",
        instruction="""\
The members `sheets/<place>.csv` of `/app/data/sheets.zip` have the columns `day,sold`. Write
`/app/out/sold.json`: for each place an object with `days` (number of lines), `sold` (their sum)
and `best` (the largest value).
""",
        data={"sheets.zip": target.getvalue()},
        solve="mkdir -p out\n"
        + python("""
import csv, io, json, zipfile
result = {}
with zipfile.ZipFile("data/sheets.zip") as archive:
    for name in archive.namelist():
        rows = list(csv.DictReader(io.StringIO(archive.read(name).decode())))
        sold = [int(row["sold"]) for row in rows]
        place = name.split("/")[-1].split(".")[0]
        result[place] = {"days": len(sold), "sold": sum(sold), "best": max(sold)}
with open("out/sold.json", "w") as target:
    json.dump(result, target)
"""),
        outputs={"/app/out/sold.json": as_json(sums)},
    )


STYLES = (
    picked_members,
    damaged_files,
    same_content,
    tidy_names,
    site_modes,
    release_links,
    zipped_sheets,
)
"""From a random state to a sound work."""
