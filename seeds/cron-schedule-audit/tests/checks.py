"""What the list of runs, the collisions and the timetable must say."""

import csv
import io
import os

OUT = "/app/out"
LIMIT_BYTES = 1_000_000


def rows_of(path):
    """The rows of a CSV file; blank lines at the end do not matter."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(io.StringIO(file.read().rstrip("\r\n"), newline="")))


def found_and_expected(name):
    """The rows of an output file as they are, and as they should be."""
    path = os.path.join(OUT, name)
    assert os.path.isfile(path) and not os.path.islink(path), path + " is not there"
    assert os.path.getsize(path) <= LIMIT_BYTES, path + " is far too large"
    found, expected = rows_of(path), rows_of("/tests/" + name)
    assert found and found[0] == expected[0], name + " does not begin with the header"
    return found, expected


def compare_content(name):
    """Fail when a row is wrong, missing or there too often, in whatever order."""
    found, expected = found_and_expected(name)
    for row in found:
        assert row in expected, "wrong row in " + name + ": " + ",".join(row)
    missing = len([row for row in expected if row not in found])
    assert not missing, name + ": " + str(missing) + " rows are missing"
    assert len(found) == len(expected), name + ": a row is there twice"


def compare_order(name):
    """Fail when the rows are not in the order asked for."""
    found, expected = found_and_expected(name)
    assert found == expected, name + " is not in the order asked for"


def check_the_planned_runs():
    compare_content("runs.csv")


def check_the_collisions():
    compare_content("collisions.csv")


def check_every_run_has_its_place_in_the_timetable():
    found, expected = found_and_expected("timetable.csv")
    keys = [tuple(row[2:5]) for row in expected]
    for row in found:
        assert tuple(row[2:5]) in keys, "no such run: " + ",".join(row)
    missing = set(keys) - {tuple(row[2:5]) for row in found}
    assert not missing, str(len(missing)) + " runs are not in the timetable"


def check_starts_and_states_follow_from_the_rules():
    compare_content("timetable.csv")


def check_runs_and_collisions_are_in_order():
    compare_order("runs.csv")
    compare_order("collisions.csv")


def check_the_timetable_is_in_order():
    compare_order("timetable.csv")
