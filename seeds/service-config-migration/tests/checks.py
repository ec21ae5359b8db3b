"""What the flattened configuration and the two reports must say."""

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


def expected(name):
    """What an output file should hold."""
    with open("/tests/" + name, encoding="utf-8", newline="") as file:
        return file.read()


def no_duplicates(pairs):
    """A JSON object whose keys are all different."""
    assert len({key for key, _ in pairs}) == len(pairs), "a key is given twice in one object"
    return dict(pairs)


def configurations():
    """The configuration as it is, and as it should be."""
    found = json.loads(read_output("effective.json"), object_pairs_hook=no_duplicates)
    assert isinstance(found, dict), "effective.json is not one object"
    assert all(isinstance(keys, dict) for keys in found.values()), "a section is not an object"
    return found, json.loads(expected("effective.json"))


def rows_of(text):
    """The rows of a CSV text; blank lines at the end do not matter."""
    return list(csv.reader(io.StringIO(text.rstrip("\r\n"), newline="")))


def check_the_files_in_reading_order():
    found, wanted = read_output("files.txt").split(), expected("files.txt").split()
    assert sorted(found) == sorted(wanted), "not the files that are read: " + " ".join(found)
    assert found == wanted, "the files are not in the order in which they are read"


def check_the_sections_and_keys():
    found, wanted = configurations()
    assert set(found) == set(wanted), "sections: " + ", ".join(sorted(found))
    for section, keys in wanted.items():
        assert set(found[section]) == set(keys), "keys of " + section + ": " + ", ".join(found[section])


def check_every_value_and_its_type():
    found, wanted = configurations()
    for section, keys in wanted.items():
        for key, value in keys.items():
            one = found[section][key]
            right = type(one) is type(value) and one == value
            assert right, section + "." + key + " is not " + json.dumps(one)


def check_the_shadowed_values():
    found, wanted = rows_of(read_output("shadowed.csv")), rows_of(expected("shadowed.csv"))
    assert found and found[0] == wanted[0], "shadowed.csv does not begin with the header"
    missing = [row for row in wanted if row not in found]
    assert not missing, str(len(missing)) + " shadowed values are missing or described wrongly"
    for row in found:
        assert row in wanted, "this row is wrong: " + ",".join(row)


def check_the_order_of_the_shadowed_values():
    found, wanted = rows_of(read_output("shadowed.csv")), rows_of(expected("shadowed.csv"))
    assert found == wanted, "shadowed.csv is not in the order asked for, or has a row twice"
