"""Usage: normalise.py BATCHES_CSV ENTRIES > normal.csv"""

import csv
import re
import sys
from datetime import datetime
from decimal import Decimal

DATE_FORMATS = {
    "DD.MM.YYYY": "%d.%m.%Y",
    "DD/MM/YYYY": "%d/%m/%Y",
    "MM/DD/YYYY": "%m/%d/%Y",
    "YYYY-MM-DD": "%Y-%m-%d",
}
MARKS = {"comma": ",", "point": "."}


def parse_amount(text, mark):
    """An amount as the tills write it."""
    is_negative = bool(re.search(r"[-\u2212(]", text))
    whole, _, cents = text.partition(mark)
    digits = re.sub(r"\D", "", whole) + "." + re.sub(r"\D", "", cents)
    return -Decimal(digits) if is_negative else Decimal(digits)


batches_path, entries_path = sys.argv[1:]
with open(batches_path, newline="") as file:
    batches = {row["batch"]: row for row in csv.DictReader(file)}

writer = csv.writer(sys.stdout, lineterminator="\n")
writer.writerow(["entry", "date", "branch", "account", "amount", "note"])
sys.stdout.reconfigure(encoding="utf-8")
with open(entries_path, encoding="utf-8") as file:
    for line in file:
        entry, batch, date, account, amount, note = line.rstrip("\n").split(";", 5)
        style = batches[batch]
        day = datetime.strptime(date, DATE_FORMATS[style["date_format"]]).date()
        value = parse_amount(amount, MARKS[style["decimal_mark"]])
        writer.writerow([entry, day, style["branch"], account, f"{value:.2f}", note])
