"""Usage: list_runs.py STARTS_CSV JOBS_CSV > runs.csv"""

import csv
import sys
from datetime import datetime, timedelta

starts_path, jobs_path = sys.argv[1:]
with open(jobs_path, newline="") as file:
    jobs = {row["job"]: row for row in csv.DictReader(file)}

print("start,end,host,job,resource")
with open(starts_path, newline="") as file:
    for start, host, job in csv.reader(file):
        end = datetime.fromisoformat(start) + timedelta(minutes=int(jobs[job]["minutes"]))
        print(start, end.isoformat(timespec="minutes"), host, job, jobs[job]["resource"], sep=",")
