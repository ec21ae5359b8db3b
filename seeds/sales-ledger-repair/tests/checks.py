"""What the repaired ledger, the reconciliation and the list of repairs must say."""

import csv
import io
import json
import os

OUT = "/app/out"
LIMIT_BYTES = 1_000_000


def read_output(name):
    """The text of an output file."""
    path = os.path.join(OUT, name)
    assert os.path.isfile(path) and not os.path.islink(path), path + " is not there"
    assert os.path.getsize(path) <= LIMIT_BYTES, path + " is far too large"
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def rows_of(text):
    """The rows of a CSV text; blank lines at the end do not matter."""
    return list(csv.reader(io.StringIO(text.rstrip("\r\n"), newline="")))


def expected_rows(name):
    """The rows as they should be."""
    with open("/tests/" + name, encoding="utf-8", newline="") as file:
        return rows_of(file.read())


def no_duplicates(pairs):
    """A JSON object whose keys are all different."""
    assert len({key for key, _ in pairs}) == len(pairs), "a key is given twice in one object"
    return dict(pairs)


def repairs():
    """The list of repairs, as it is and as it should be."""
    found = json.loads(read_output("repairs.json"), object_pairs_hook=no_duplicates)
    with open("/tests/repairs.json", encoding="utf-8") as file:
        expected = json.load(file)
    assert isinstance(found, dict), "repairs.json is not one object"
    assert set(found) == set(expected), "keys of repairs.json: " + ", ".join(sorted(found))
    return found, expected


def check_the_ledger_holds_the_right_entries_in_order():
    found, expected = rows_of(read_output("ledger.csv")), expected_rows("ledger.csv")
    assert found and found[0] == expected[0], "ledger.csv does not begin with the header"
    names = [row[0] if row else "" for row in found[1:]]
    wanted = [row[0] for row in expected[1:]]
    assert not set(wanted) - set(names), "missing: " + " ".join(sorted(set(wanted) - set(names)))
    assert not set(names) - set(wanted), "too many: " + " ".join(sorted(set(names) - set(wanted)))
    assert names == wanted, "an entry is there twice, or the order is wrong"


def check_every_amount():
    amounts = {row[0]: row[4] for row in expected_rows("ledger.csv")}
    for row in rows_of(read_output("ledger.csv")):
        wanted = amounts.get(row[0])
        assert row[4] == wanted, row[0] + ": the amount is not " + str(row[4])


def check_every_date_branch_account_and_note():
    expected = {row[0]: row for row in expected_rows("ledger.csv")}
    for row in rows_of(read_output("ledger.csv")):
        wanted = expected[row[0]]
        assert row[:4] + row[5:] == wanted[:4] + wanted[5:], "this row is wrong: " + ",".join(row)


def check_the_reconciliation():
    found, expected = rows_of(read_output("reconciliation.csv")), expected_rows("reconciliation.csv")
    assert found and found[0] == expected[0], "reconciliation.csv does not begin with the header"
    for row in found:
        assert row in expected, "this row is wrong: " + ",".join(row)
    assert found == expected, "a row is missing or there twice, or the order is wrong"


def check_joined_and_doubled_entries():
    found, expected = repairs()
    assert found["joined"] == expected["joined"], "the list of joined entries is wrong"
    assert found["doubled"] == expected["doubled"], "the list of doubled entries is wrong"


def check_voided_entries_and_unapplied_corrections():
    found, expected = repairs()
    assert found["voided"] == expected["voided"], "the list of voided entries is wrong"
    assert found["unapplied"] == expected["unapplied"], "the list of unapplied corrections is wrong"
