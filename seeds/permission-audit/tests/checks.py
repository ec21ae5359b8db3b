"""Checks of the findings, and of the script by applying it to a model of the tree."""

import csv
import json
import re
import shlex

OUT = "/app/out/"
with open("/tests/expected.json", encoding="utf-8") as handle:
    EXPECTED = json.load(handle)


def text(name):
    with open(OUT + name, encoding="utf-8", newline="") as handle:
        return handle.read()


def table(name, header):
    rows = [",".join(row) for row in csv.reader(text(name).rstrip().splitlines())]
    assert rows[:1] == [header], "%s: the header is not %s" % (name, header)
    return rows[1:]


def commands():
    """The script's commands as (program, value, path). Anything else is refused."""
    lines = text("remediate.sh").rstrip().splitlines()
    assert lines[:2] == ["#!/bin/sh", "set -eu"], "the script does not start as agreed"
    found = []
    for number, line in enumerate(lines[2:], 3):
        assert "$" not in line and "`" not in line, "line %d: expansion" % number
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split, lexer.commenters = True, ""
        words = [word for word in lexer if word != "--"]
        assert len(words) == 3 and words[0] in ("chmod", "chown"), "line %d: %s" % (number, line)
        assert words[2] in EXPECTED["model"], "line %d: no such path: %s" % (number, words[2])
        found.append(tuple(words))
    assert found, "the script does nothing"
    return found


def apply_to(state, program, value):
    """The [mode, owner, group, kind] of an entry after a command, as Linux does it."""
    mode, owner, group, kind = state
    if program == "chmod":
        assert re.fullmatch("[0-7]{4}", value), "no mode of four octal digits: " + value
        return [value, owner, group, kind]
    new_owner, _, new_group = value.partition(":")
    assert value.count(":") <= 1 and (new_owner or new_group), "no owner or group: " + value
    bits = int(mode, 8)
    if kind == "f":
        bits &= ~0o4000
        if bits & 0o010:
            bits &= ~0o2000
    return ["%04o" % bits, new_owner or owner, new_group or group, kind]


def check_findings():
    found, wanted = table("findings.csv", "path,rule,aspect,found,required"), EXPECTED["findings"]
    extra = sorted(set(found) - set(wanted))
    assert not extra, "no such finding: %s" % extra[:3]
    assert set(found) == set(wanted), "%d findings are missing" % len(set(wanted) - set(found))
    assert found == wanted, "not sorted, or a finding is there twice"


def check_script_form_and_order():
    order = [(path.encode(), program == "chmod") for program, _, path in commands()]
    assert order == sorted(order), "the commands are not sorted by path, chown before chmod"
    assert len(order) == len(set(order)), "more than one chown or chmod for one path"


def check_every_command_changes_something():
    state = dict(EXPECTED["model"])
    for program, value, path in commands():
        after = apply_to(state[path], program, value)
        assert after != state[path], "changes nothing: %s %s %s" % (program, value, path)
        state[path] = after


def check_tree_is_as_required_afterwards():
    state, wanted = dict(EXPECTED["model"]), EXPECTED["target"]
    for program, value, path in commands():
        state[path] = apply_to(state[path], program, value)
    wrong = [path for path in wanted if state[path][:3] != wanted[path]]
    assert not wrong, "not remedied: %s" % wrong[:3]


def check_nothing_else_is_touched():
    touched = sorted({path for _, _, path in commands()} - set(EXPECTED["target"]))
    assert not touched, "touched without a finding: %s" % touched[:3]


def check_rules():
    found = table("rules.csv", "rule,entries,findings,excepted")
    wrong = [row for row in found if row not in EXPECTED["rules"]]
    assert not wrong, "wrong lines: %s" % wrong[:3]
    assert found == EXPECTED["rules"], "rules are missing, doubled or not in the policy's order"
