"""Checks of the consolidated zone, the errors and the addresses."""

import csv
import json
import re

OUT = "/app/out/"
with open("/tests/expected.json", encoding="utf-8") as handle:
    EXPECTED = json.load(handle)


def text(name):
    with open(OUT + name, encoding="utf-8", newline="") as handle:
        return handle.read().rstrip().splitlines()


def zone():
    """The records with single spaces outside of strings."""
    return [" ".join(re.findall(r'"[^"]*"|\S+', line)) for line in text("depot.example.zone")]


def table(name, header):
    rows = [",".join(row) for row in csv.reader(text(name))]
    assert rows[:1] == [header], "%s: the header is not %s" % (name, header)
    return rows[1:]


def compare(found, wanted, what):
    extra = sorted(set(found) - set(wanted))
    assert not extra, "%d wrong %s, such as: %s" % (len(extra), what, extra[0])
    missing = set(wanted) - set(found)
    assert not missing, "%d %s missing" % (len(missing), what)


def check_soa():
    assert zone()[:1] == EXPECTED["zone"][:1], "the zone does not begin with the agreed SOA"


def check_records():
    compare(zone(), EXPECTED["zone"], "records")


def check_order_of_records():
    assert zone() == EXPECTED["zone"], "not each record once, in the agreed order"


def check_errors():
    compare(table("errors.csv", "kind,file,line,owner,type"), EXPECTED["errors"], "errors")


def check_order_of_errors():
    found = table("errors.csv", "kind,file,line,owner,type")
    assert found == EXPECTED["errors"], "not each error once, in the agreed order"


def check_addresses():
    found = table("addresses.csv", "address,names")
    compare(found, EXPECTED["addresses"], "addresses")
    assert found == EXPECTED["addresses"], "not each address once, in the agreed order"
