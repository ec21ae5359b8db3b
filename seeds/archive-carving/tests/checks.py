"""Checks of the recovered files and of the three reports."""

import csv
import hashlib
import json
import os

OUT = "/app/out/"
with open("/tests/expected.json", encoding="utf-8") as handle:
    EXPECTED = json.load(handle)


def digest(path):
    with open(path, "rb") as handle:
        return hashlib.sha256(handle.read()).hexdigest()


def recovered():
    """SHA-256 by path below files/; a link counts as something that is not a file."""
    found = {}
    for folder, folders, names in os.walk(OUT + "files"):
        for name in names + [one for one in folders if os.path.islink(os.path.join(folder, one))]:
            path = os.path.join(folder, name)
            is_file = os.path.isfile(path) and not os.path.islink(path)
            found[os.path.relpath(path, OUT + "files")] = digest(path) if is_file else "no file"
    return found


def table(name, header):
    """The lines below the header, as text."""
    with open(OUT + name, encoding="utf-8", newline="") as handle:
        rows = [",".join(row) for row in csv.reader(handle.read().rstrip().splitlines())]
    assert rows[:1] == [header], "%s: the header is not %s" % (name, header)
    return rows[1:]


def compare(found, wanted, what):
    extra = sorted(set(found) - set(wanted))
    assert not extra, "wrong %s: %s" % (what, extra[:3])
    missing = sorted(set(wanted) - set(found))
    assert not missing, "%d %s missing" % (len(missing), what)
    assert found == wanted, "the order is wrong, or a line is there twice"


def check_every_intact_file_is_there():
    missing = sorted(set(EXPECTED["files"]) - set(recovered()))
    assert not missing, "%d recoverable files are missing" % len(missing)


def check_recovered_content():
    found = recovered()
    wrong = sorted(p for p in EXPECTED["files"] if p in found and found[p] != EXPECTED["files"][p])
    assert found and not wrong, "content differs from the catalogue: %s" % wrong[:3]


def check_nothing_else_is_recovered():
    found = recovered()
    extra = sorted(set(found) - set(EXPECTED["files"]))
    assert found and not extra, "not a recoverable file: %s" % extra[:3]


def check_losses():
    compare(table("losses.csv", "path,owner,reason,bytes"), EXPECTED["losses"], "losses")


def check_strays():
    compare(table("stray.csv", "name,size,sha256"), EXPECTED["stray"], "strays")


def check_summary():
    compare(table("summary.csv", "owner,files,recovered,bytes"), EXPECTED["summary"], "teams")
