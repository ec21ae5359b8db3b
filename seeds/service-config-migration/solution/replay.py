"""Usage: replay.py STATEMENTS_TSV FINAL_JSON > shadowed.csv (without a header)

FINAL_JSON gets, by section and key, the raw values that a key holds in the end.
"""

import csv
import json
import sys
from collections import defaultdict

statements_path, final_path = sys.argv[1:]
held = defaultdict(list)
writer = csv.writer(sys.stdout, lineterminator="\n")
with open(statements_path) as file:
    for statement in file:
        path, line, section, _, operation, key, value = statement.rstrip("\n").split("\t")
        if operation != "+=":
            for old_path, old_line, old_value in held.pop((section, key), []):
                writer.writerow([section, key, old_path, old_line, old_value, path, line])
        if operation != "unset":
            held[section, key].append((path, line, value))

final = defaultdict(dict)
for (section, key), values in held.items():
    final[section][key] = [value for _, _, value in values]
with open(final_path, "w") as file:
    json.dump(final, file)
