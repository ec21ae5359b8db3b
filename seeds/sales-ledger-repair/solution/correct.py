"""Usage: correct.py NORMAL_CSV CORRECTIONS_CSV VOIDED UNAPPLIED > ledger.csv"""

import csv
import sys
from decimal import Decimal

ledger_path, corrections_path, voided_path, unapplied_path = sys.argv[1:]
with open(ledger_path, newline="", encoding="utf-8") as file:
    reader = csv.DictReader(file)
    fields = reader.fieldnames
    entries = {row["entry"]: row for row in reader}
with open(corrections_path, newline="", encoding="utf-8") as file:
    corrections = sorted(csv.DictReader(file), key=lambda row: row["issued"])

voided = set()
unapplied = []
for correction in corrections:
    entry, action = correction["entry"], correction["action"]
    if entry not in entries or (entry in voided) != (action == "restore"):
        unapplied.append(correction["correction"])
    elif action == "void":
        voided.add(entry)
    elif action == "restore":
        voided.remove(entry)
    elif action == "negate":
        entries[entry]["amount"] = f"{-Decimal(entries[entry]['amount']):.2f}"
    else:
        entries[entry][correction["field"]] = correction["value"]

sys.stdout.reconfigure(encoding="utf-8")
writer = csv.DictWriter(sys.stdout, fields, lineterminator="\n")
writer.writeheader()
writer.writerows(entries[entry] for entry in sorted(entries) if entry not in voided)
for path, names in ((voided_path, voided), (unapplied_path, unapplied)):
    with open(path, "w") as file:
        file.writelines(f"{name}\n" for name in names)
