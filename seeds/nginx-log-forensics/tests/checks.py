"""What the incident report and the blocklist must say."""

import json
import os

OUT = "/app/out"
LIMIT_BYTES = 1_000_000
with open("/tests/expected.json", encoding="utf-8") as file:
    EXPECTED = json.load(file)


def read_output(name):
    """The text of an output file."""
    path = os.path.join(OUT, name)
    assert os.path.isfile(path) and not os.path.islink(path), path + " is not there"
    assert os.path.getsize(path) <= LIMIT_BYTES, path + " is far too large"
    with open(path, encoding="utf-8") as file:
        return file.read()


def no_duplicates(pairs):
    """A JSON object whose keys are all different."""
    assert len({key for key, _ in pairs}) == len(pairs), "a key is given twice in one object"
    return dict(pairs)


def report():
    """The incident report, with exactly the agreed keys."""
    value = json.loads(read_output("incident.json"), object_pairs_hook=no_duplicates)
    assert isinstance(value, dict), "incident.json is not one object"
    assert set(value) == set(EXPECTED), "keys of incident.json: " + ", ".join(sorted(value))
    return value


def same(one, two):
    """Equal as JSON: true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(two, sort_keys=True)


def clients(sources):
    """The clients of a list of sources, in order."""
    return [source["client"] for source in sources]


def check_lines_are_counted():
    found = report()["lines"]
    assert same(found, EXPECTED["lines"]), "lines are not counted right: " + json.dumps(found)


def check_period_is_right():
    found = report()["period"]
    assert same(found, EXPECTED["period"]), "the period is wrong: " + json.dumps(found)


def check_every_source_is_found():
    missing = set(clients(EXPECTED["sources"])) - set(clients(report()["sources"]))
    assert not missing, str(len(missing)) + " sources are missing"


def check_nobody_is_accused_wrongly():
    wrong = set(clients(report()["sources"])) - set(clients(EXPECTED["sources"]))
    assert not wrong, "not a source: " + ", ".join(sorted(map(str, wrong)))


def check_sources_have_the_right_figures_and_order():
    found = report()["sources"]
    assert clients(found) == clients(EXPECTED["sources"]), "the sources are not in the order asked for"
    for one, expected in zip(found, EXPECTED["sources"]):
        assert same(one, expected), "wrong figures: " + json.dumps(one)


def check_compromised_accounts():
    found, expected = report()["compromised"], EXPECTED["compromised"]
    names = [entry["account"] for entry in found]
    assert sorted(names) == sorted(e["account"] for e in expected), "not these accounts: " + str(names)
    assert same(found, expected), "client, time or order of the compromised accounts is wrong"


def check_blocklist():
    with open("/tests/blocklist.conf", encoding="utf-8") as file:
        expected = [line.split() for line in file]
    found = [line.split() for line in read_output("blocklist.conf").splitlines() if line.strip()]
    assert sorted(found) == sorted(expected), "the blocklist does not hold exactly the sources"
    assert found == expected, "the blocklist is not in numerical order, IPv4 first"
