"""Usage: expand_crontab.py CRONTAB HOST UTC_OFFSET BEGIN END > starts.csv (start,host,job; UTC)"""

import re
import sys
from datetime import datetime, timedelta

MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()
DAYS = "sun mon tue wed thu fri sat".split()
NICKNAMES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
}
FORMAT = "%Y-%m-%dT%H:%M"


def number(text, names, first):
    return names.index(text.lower()) + first if text.lower() in names else int(text)


def values(field, low, high, names=(), first=0):
    """The set of numbers that a time field stands for."""
    found = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        if span == "*":
            begin, end = low, high
        else:
            edges = [number(edge, names, first) for edge in span.split("-")]
            begin, end = edges[0], edges[-1]
        found.update(range(begin, end + 1, int(step or 1)))
    return found


class Schedule:
    def __init__(self, fields):
        minute, hour, day, month, weekday = fields
        self.minutes = values(minute, 0, 59)
        self.hours = values(hour, 0, 23)
        self.days = values(day, 1, 31)
        self.months = values(month, 1, 12, MONTHS, 1)
        self.weekdays = {value % 7 for value in values(weekday, 0, 7, DAYS)}
        self.either_day = day[0] != "*" and weekday[0] != "*"

    def fits(self, time):
        by_date = time.day in self.days
        by_weekday = time.isoweekday() % 7 in self.weekdays
        day_fits = by_date or by_weekday if self.either_day else by_date and by_weekday
        return (
            day_fits
            and time.month in self.months
            and time.hour in self.hours
            and time.minute in self.minutes
        )


crontab, host, offset, begin, end = sys.argv[1:]
begin, end = (datetime.strptime(text, FORMAT) for text in (begin, end))
sign, hours, minutes = re.fullmatch(r"([+-])(\d\d):(\d\d)", offset).groups()
shift = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)

with open(crontab) as file:
    lines = [line.strip() for line in file]
for line in lines:
    if line == "CRON_TZ=UTC":
        shift = timedelta(0)
    if not line or line.startswith("#") or re.match(r"\w+\s*=", line):
        continue
    words = line.split()
    if words[0].startswith("@"):
        words[:1] = NICKNAMES.get(words[0], "").split()
    if len(words) < 8 or words[6] != "/opt/jobs/run":
        continue
    schedule = Schedule(words[:5])
    time = begin
    while time < end:
        if schedule.fits(time + shift):
            print(time.strftime(FORMAT), host, words[7], sep=",")
        time += timedelta(minutes=1)
