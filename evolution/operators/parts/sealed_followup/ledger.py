"""Replay the movements of a ledger: ledger.py MOVEMENTS_CSV"""

import csv
import json
import sys
from collections import defaultdict

with open(sys.argv[1], newline="") as file:
    MOVEMENTS = {int(row["seq"]): row for row in csv.DictReader(file)}

balances: dict[str, int] = defaultdict(lambda: 1000)
for movement in MOVEMENTS.values():
    for account in filter(None, (movement["source"], movement["target"])):
        balances[account] += 0
open_transfers: dict[int, tuple[str, str, int]] = {}
refused = []
lows = []
for seq in sorted(MOVEMENTS):
    movement = MOVEMENTS[seq]
    if movement["kind"] == "transfer":
        giver, taker, amount = movement["source"], movement["target"], int(movement["amount"])
    else:
        taker, giver, amount = open_transfers.get(int(movement["ref"]), ("", "", 0))
    if not giver or balances[giver] < amount:
        refused.append(seq)
        continue
    balances[giver] -= amount
    balances[taker] += amount
    if movement["kind"] == "transfer":
        open_transfers[seq] = (giver, taker, amount)
    else:
        del open_transfers[int(movement["ref"])]
    lows.append((balances[giver], seq, giver))
balance, seq, account = min(lows)
answer = {
    "balances": dict(sorted(balances.items())),
    "refused": refused,
    "lowest": {"account": account, "balance": balance, "seq": seq},
}
json.dump(answer, sys.stdout, indent=1)
