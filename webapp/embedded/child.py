"""What the supervisor starts: one long-lived process of one kind, which ends with its parent.

Usage: python -m webapp.embedded.child web FD | worker CELERY-OPTION… | beat CELERY-OPTION…
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Sequence
from itertools import pairwise

PR_SET_PDEATHSIG = 1
PARENT = "RATCHET_PARENT"
"""The environment variable with the process id of the supervisor."""
ORPHAN_GRACE_SECONDS = 5.0
CLOSE_SECONDS = 2  # how long open pages may hold up the end of the web process


def end_with_parent() -> None:
    """Ask the kernel for SIGTERM when the parent dies, and make sure a while later."""
    parent = int(os.environ.get(PARENT, os.getppid()))
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        time.sleep(ORPHAN_GRACE_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    if os.getppid() != parent:  # it died before we could ask
        sys.exit("the supervisor ended")
    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


def run_web(fd: int) -> None:
    """Serve the application on a listening socket that the parent opened."""
    import uvicorn

    listener = socket.socket(fileno=fd)
    config = uvicorn.Config(
        "webapp.asgi:application",
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=CLOSE_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listener])


def calls_models(arguments: Sequence[str]) -> bool:
    """Whether a worker with this command line does what asks models."""
    queues = [value for option, value in pairwise(arguments) if option == "-Q"]
    return arguments[0] == "worker" and any("evolution" in names.split(",") for names in queues)


def run_celery(arguments: Sequence[str]) -> None:
    """A worker or beat, by Celery's own command line."""
    from celery.exceptions import SecurityWarning

    from webapp.celery import app
    from webapp.keys import forget_keys

    if not calls_models(arguments):
        forget_keys()  # what `.env` has brought

    # Root is usual in containers, and a sandbox never runs as root.
    warnings.simplefilter("ignore", SecurityWarning)
    app.start(["--quiet", *arguments])


def main(arguments: Sequence[str]) -> None:
    """Become the kind of process that the first argument names."""
    end_with_parent()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
    if arguments[0] == "web":
        run_web(int(arguments[1]))
    else:
        run_celery(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
