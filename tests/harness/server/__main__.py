"""Serves the scripted models until it is ended: python -m tests.harness.server --port 8123"""

from __future__ import annotations

import argparse
import signal
import sys
import threading

from tests.harness.server.faults import Fault, FaultPlan
from tests.harness.server.http import ModelServer
from tests.harness.server.models import all_models


def main() -> int:
    """Serve; the first line on stdout is the base URL."""
    parser = argparse.ArgumentParser(prog="python -m tests.harness.server", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--faults", type=float, default=0.0, help="share of calls to be spoiled")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    options = parser.parse_args()
    kinds = tuple(kind for kind in Fault if kind is not Fault.WRONG_MODEL)
    plan = FaultPlan(share=options.faults, kinds=kinds)
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: over.set())
    with ModelServer(
        all_models(), faults=plan, latency=options.latency, port=options.port
    ) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        over.wait()
    faults = sum(call.fault is not None for call in server.served)
    told = server.told()
    sys.stdout.write(f"{len(server.served)} calls, {faults} spoiled, {told} tokens told\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
