"""Checks of the three tables, each in its parts."""

import csv
import json

OUT = "/app/out/"
with open("/tests/expected.json", encoding="utf-8") as handle:
    EXPECTED = {key: [row.split(",") for row in rows] for key, rows in json.load(handle).items()}


def table(name, header):
    with open(OUT + name + ".csv", encoding="utf-8", newline="") as handle:
        rows = list(csv.reader(handle.read().rstrip().splitlines()))
    assert rows[:1] == [header.split(",")], "%s.csv: the header is not %s" % (name, header)
    wrong = [row for row in rows if len(row) != len(rows[0])]
    assert not wrong, "%s.csv: not %d fields: %s" % (name, len(rows[0]), wrong[0])
    return rows[1:]


def availability():
    return table("availability", "service,up,down,unknown,excluded,availability")


def check_slot_counts():
    wanted = [row[:5] for row in EXPECTED["availability"]]
    wrong = [row[0] for row in availability() if row[:5] not in wanted]
    assert not wrong, "slots are counted wrongly for: %s" % wrong
    assert [row[:5] for row in availability()] == wanted, "not each service once, sorted"


def check_availability():
    figures = [(row[0], row[5]) for row in availability()]
    wanted = [(row[0], row[5]) for row in EXPECTED["availability"]]
    assert figures == wanted, "availability differs from up / (up + down), three decimals"


def check_gaps():
    found, wanted = table("gaps", "host,first,last,slots"), EXPECTED["gaps"]
    extra = [row for row in found if row not in wanted]
    assert not extra, "no such gap: %s" % extra[:2]
    assert found == wanted, "gaps are missing, doubled or not in order"


def outages():
    return table("outages", "service,first,last,slots,down")


def check_outages_begin_and_end():
    found, wanted = [row[:3] for row in outages()], [row[:3] for row in EXPECTED["outages"]]
    extra = [row for row in found if row not in wanted]
    assert not extra, "no such outage: %s" % extra[:2]
    assert found == wanted, "outages are missing, doubled or not in order"


def check_outage_lengths():
    wanted = {tuple(row[:2]): row[3:] for row in EXPECTED["outages"]}
    wrong = [row for row in outages() if wanted.get(tuple(row[:2])) != row[3:]]
    assert outages() and not wrong, "wrong number of slots or of down slots: %s" % wrong[:2]
