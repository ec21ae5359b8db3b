"""The settings of the tests: those of the application, on a home of this run alone.

Two runs at once, the processes of one run (pytest-xdist), and a run beside a serving Ratchet do
not meet. `DATABASE_URL` is honoured.
"""

from __future__ import annotations

import os
import tempfile

worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if os.environ.get("RATCHET_TEST_WORKER") != worker:  # what a test starts is at home there, too
    os.environ["RATCHET_TEST_WORKER"] = worker
    os.environ["RATCHET_TEST_HOME"] = tempfile.mkdtemp(prefix="ratchet-tests-")
    os.environ["RATCHET_TEST_OWNER"] = str(os.getpid())
os.environ["RATCHET_HOME"] = os.environ["RATCHET_TEST_HOME"]
os.environ["EMBEDDED_POSTGRES_IS_DURABLE"] = "off"
for name in (
    "RATCHET_MODELS",
    "RATCHET_PRICES",
    "CELERY_BROKER_URL",
    "SECRET_KEY",
    "ALLOWED_HOSTS",
    "DEBUG",
):
    os.environ.pop(name, None)

from webapp.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # quick, for tests only
