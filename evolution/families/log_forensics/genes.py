"""The family's genes, each with its cell of the grid and its words."""

from __future__ import annotations

from evolution.contracts import Statement
from evolution.directions import Aspect, Direction, Effect
from evolution.families.gene_operator import Gene
from evolution.sequence import Pair

GENES = (
    Gene(
        "clocks",
        "Hosts whose clocks are not set to UTC",
        Direction.SCENARIO,
        Aspect.CONSTRAINTS,
        Effect.SOLUTION,
        why="What looks simultaneous is not: attacks only show once every host's times are put on "
        "one scale, the hour that a clock shows twice included.",
        statement=Statement(
            "The clocks of the hosts are not set to UTC, and their lines carry no offset.",
            "`timeline.csv` lists all break-ins in UTC.",
        ),
        phrase=Pair("logs of hosts in several time zones across a clock change", ""),
    ),
    Gene(
        "noise",
        "Shortened, cut off and hostile log lines",
        Direction.SCENARIO,
        Aspect.CONSTRAINTS,
        Effect.SOLUTION,
        why="Lines can stand for several events, for none, or lie about who caused them, so a "
        "pattern that fits the usual line miscounts.",
        statement=Statement(
            "The log daemon shortens repeated lines, and a full disk cut lines off.",
            "`rejected.txt` names every line that was cut off.",
        ),
        phrase=Pair("shortened, cut off and hostile log lines", ""),
        place=1,
    ),
    Gene(
        "leases",
        "Attackers inside, behind addresses that change hands",
        Direction.LENGTH,
        Aspect.CONSTRAINTS,
        Effect.SOLUTION,
        why="The attackers found first have to be joined, moment by moment, with a second source: "
        "an address alone no longer names a device.",
        statement=Statement(
            "Some attackers have our own addresses, which devices hold for a while only.",
            "`devices.csv` says which devices were behind them.",
        ),
        phrase=Pair("inside addresses that change hands", "joining events with leases by time"),
    ),
    Gene(
        "volume",
        "More log than memory",
        Direction.LENGTH,
        Aspect.RESOURCES,
        Effect.BUDGET,
        why="The logs no longer fit into memory as lines, so the work has to be done in one "
        "streaming pass, and nothing can be looked at by hand.",
        statement=Statement(
            "The logs are compressed and larger than the machine's memory once unpacked to lines.",
            "`hourly.csv` has the failed attempts by hour.",
        ),
        phrase=Pair("more log lines than memory", "aggregating in one streaming pass"),
    ),
)
