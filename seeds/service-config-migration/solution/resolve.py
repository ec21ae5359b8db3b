"""Usage: resolve.py FINAL_JSON SCHEMA_TSV > effective.json"""

import fnmatch
import json
import re
import sys

UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "kb": 10**3, "mb": 10**6, "gb": 10**9}
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}

final_path, schema_path = sys.argv[1:]
with open(final_path) as file:
    final = json.load(file)
with open(schema_path) as file:
    schema = [line.rstrip("\n").split("\t") for line in file]


def text_of(section, key):
    """A key's text with its references filled in."""
    raw = ", ".join(final[section][key])
    return re.sub(r"\$\$|\$\{([^}.]+)\.([^}]+)\}", fill, raw)


def fill(match):
    return "$" if match[0] == "$$" else text_of(match[1].lower(), match[2].lower().replace("-", "_"))


def typed(name, text):
    kind = next((kind for pattern, kind in schema if fnmatch.fnmatchcase(name, pattern)), "string")
    if kind == "integer":
        return int(text)
    if kind == "boolean":
        return {"on": True, "yes": True, "true": True, "1": True}.get(text.lower(), False)
    if kind == "duration":
        return sum(int(n) * SECONDS[unit] for n, unit in re.findall(r"(\d+)([dhms]?)", text))
    if kind == "size":
        number, unit = re.fullmatch(r"(\d+)\s*(\w*)", text).groups()
        return int(number) * UNITS[unit.lower()]
    if kind == "list":
        return [part.strip() for part in text.split(",") if part.strip()]
    return text


effective = {
    section: {key: typed(f"{section}.{key}", text_of(section, key)) for key in keys}
    for section, keys in final.items()
}
print(json.dumps(effective, indent=2))
