"""Usage: reconcile.py LEDGER_CSV BANK_TOTALS_CSV > reconciliation.csv"""

import csv
import sys
from collections import Counter, defaultdict
from decimal import Decimal

ledger_path, bank_path = sys.argv[1:]
counts = Counter()
totals = defaultdict(Decimal)
bank = defaultdict(Decimal)
with open(ledger_path, newline="", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        key = row["branch"], row["date"][:7]
        counts[key] += 1
        totals[key] += Decimal(row["amount"])
with open(bank_path, newline="", encoding="utf-8") as file:
    for row in csv.DictReader(file):
        bank[row["branch"], row["month"]] += Decimal(row["total"])

writer = csv.writer(sys.stdout, lineterminator="\n")
writer.writerow(["branch", "month", "entries", "total", "bank", "difference"])
for key in sorted(totals.keys() | bank.keys()):
    money = totals[key], bank[key], totals[key] - bank[key]
    writer.writerow([*key, counts[key], *(f"{value:.2f}" for value in money)])
