"""Usage: read_statements.py FOLDER MAIN_FILE > statements.tsv

One line per statement: file, line, section, profile, operation, key, value. The operation `read`
marks the beginning of a file.
"""

import fnmatch
import os
import re
import sys

folder, main_file = sys.argv[1:]
seen = set()


def strip_comment(text):
    """The text up to a comment that is outside quotes."""
    quoted = escaped = False
    for index, char in enumerate(text):
        if escaped:
            escaped = False
        elif quoted and char == "\\":
            escaped = True
        elif char == '"':
            quoted = not quoted
        elif not quoted and char in "#;" and (index == 0 or text[index - 1] == " "):
            return text[:index].strip()
    return text.strip()


def logical_lines(path):
    """Line number and text of each statement or header."""
    with open(os.path.join(folder, path)) as file:
        lines = enumerate(file.read().splitlines(), 1)
    for number, text in lines:
        if text.lstrip(" ").startswith(("#", ";")):
            continue
        while text.endswith("\\"):
            text = text[:-1].rstrip(" ") + " " + next(lines)[1].lstrip(" ")
        text = strip_comment(text)
        if text:
            yield number, text


def unquote(value):
    if not value.startswith('"'):
        return value
    return re.sub(r"\\(.)", r"\1", value[1:-1])


def matching(pattern, at):
    """The files that an include means, in the order of reading."""
    head, last = os.path.split(os.path.normpath(os.path.join(os.path.dirname(at), pattern)))
    names = os.listdir(os.path.join(folder, head))
    found = [n for n in names if fnmatch.fnmatchcase(n, last) and (n[0] != "." or last[0] == ".")]
    return [os.path.join(head, name) for name in sorted(found)]


def emit(*fields):
    print(*fields, sep="\t")


def read(path):
    if path in seen:
        return
    seen.add(path)
    emit(path, 0, "", "", "read", "", "")
    section = profile = ""
    for number, text in logical_lines(path):
        header = re.fullmatch(r"\[([^\]@]+?)\s*(?:@\s*(\S+?))?\s*\]", text)
        include = re.fullmatch(r"include\??\s+(.+)", text)
        unset = re.fullmatch(r"unset\s+(\S+)", text)
        if header:
            section, profile = header[1].lower(), header[2] or ""
        elif include:
            for name in matching(include[1], path):
                read(name)
        elif unset:
            emit(path, number, section, profile, "unset", normal(unset[1]), "")
        else:
            key, operation, value = re.fullmatch(r"([^=+\s]+)\s*(\+?=)\s*(.*)", text).groups()
            emit(path, number, section, profile, operation, normal(key), unquote(value))


def normal(key):
    return key.lower().replace("-", "_")


read(main_file)
