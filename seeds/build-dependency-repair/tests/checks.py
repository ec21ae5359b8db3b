"""Checks of the repaired build: the delivered rules are used to build afresh from clean sources."""

import csv
import hashlib
import os
import sys

OUT = "/app/out/"
PROJECT = "/tests/project/"
sys.path.insert(0, PROJECT + "tools")
import build  # noqa: E402  the project's own driver, from a clean copy

FAULTS = """\
missing-dependency,build/bus.i,build/crc_table.h
missing-dependency,build/gateway.img,build/watchdog.i
missing-dependency,build/sensor.i,build/limits.h
missing-rule,build/crc_table.h,-
stale,build/crc_table.h,-
stale,build/limits.h,-
stale,build/registers.h,-
stale,build/sensor.i,-
stale,build/uart.i,-
unused-dependency,build/registers.h,build/limits.h
unused-dependency,build/uart.i,src/sensor.h
unused-dependency,build/watchdog.i,build/version.h
wrong-address,build/registers.h,0x4800
""".splitlines()


def source(name):
    path = PROJECT + name
    assert os.path.isfile(path) and name.startswith("src/"), "there is no source " + name
    with open(path, encoding="utf-8") as handle:
        return handle.read()


def build_all(text):
    """A clean build: (rules, order, content by target, opened files by target)."""
    rules = build.parse(text)
    order = build.order(rules, lambda name: os.path.isfile(PROJECT + name))
    made, opened = {}, {}
    for target in order:
        opened[target] = set()

        def read(name, target=target):
            opened[target].add(name)
            return made[name] if name in made else source(name)

        made[target] = build.run_rule(target, rules[target], read)
    return rules, order, made, opened


def delivered(name):
    with open(OUT + name, encoding="utf-8") as handle:
        return handle.read()


def lines(name):
    return delivered(name).rstrip().splitlines()


def expected():
    with open(PROJECT + "Buildfile", encoding="utf-8") as handle:
        return build_all(handle.read())


def check_rules_for_every_target():
    rules = build.parse(delivered("Buildfile"))
    wanted = expected()[0]
    assert set(rules) == set(wanted), "targets that differ: %s" % sorted(set(rules) ^ set(wanted))


def check_rules_are_sorted():
    rules = [line for line in lines("Buildfile") if line.strip() and line[0] != "#"]
    targets = [line.split(" : ")[0].strip() for line in rules]
    assert targets == sorted(targets), "the rules are not sorted by target"


def check_clean_build_is_right():
    made, wanted = build_all(delivered("Buildfile"))[2], expected()[2]
    wrong = sorted(target for target in wanted if made.get(target) != wanted[target])
    assert not wrong, "built afresh, these are not what they must be: %s" % wrong


def check_rules_list_what_steps_open():
    rules, _, _, opened = build_all(delivered("Buildfile"))
    wrong = sorted(t for t in rules if sorted(rules[t][0]) != sorted(opened[t]))
    assert not wrong, "these rules do not list exactly what their step opens: %s" % wrong


def check_build_order():
    assert lines("build-order.txt") == expected()[1], "not the order of a clean build"


def check_checksums():
    made = expected()[2]
    wanted = ["%s  %s" % (hashlib.sha256(made[t].encode()).hexdigest(), t) for t in sorted(made)]
    assert lines("checksums.txt") == wanted, "not the checksums of a clean build, sorted by path"


def check_faults():
    found = [",".join(row) for row in csv.reader(lines("faults.csv"))]
    assert found[:1] == ["kind,target,detail"], "the header is not kind,target,detail"
    extra, missing = sorted(set(found[1:]) - set(FAULTS)), sorted(set(FAULTS) - set(found[1:]))
    assert not extra, "no such fault: %s" % extra
    assert not missing, "faults that were not found: %d" % len(missing)
    assert found[1:] == FAULTS, "not sorted, or a fault is there twice"
