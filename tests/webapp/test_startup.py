"""What starts without asking a model loads no client of a provider: they take seconds."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.conftest import ROOT, worker_environment
from tests.webapp.rows import make_seed, make_user
from webapp.models import Role

START = """
import json, os, sys
import django
django.setup()
from django.conf import settings
from django.core.management import call_command
settings.RATCHET_MODELS = "default=http://127.0.0.1:9/v1 m"
settings.RATCHET_PRICES = "m=1/4"
seen = {}
def look(name):
    seen[name] = sorted({"pydantic_ai", "openai", "anthropic"} & set(sys.modules))
call_command("check")
look("check")
import webapp.asgi, webapp.urls, webapp.wiring, webapp.jobs
look("web")
from django.test import Client
from webapp.models import User, Lineage
client = Client(headers={"host": "localhost"})
client.force_login(User.objects.get(username="olga"))
lineage = Lineage.objects.get()
pages = ["/", "/runs/new/", "/models/", f"/environments/{lineage.environments.get().pk}/gates/"]
for page in pages:
    assert client.get(page).status_code == 200, page
look("pages")
data = {"lineages": [lineage.pk], "generations": 1, "children": 1, "effort": "low", "seed": 0,
        "author": "llm", "budget_tokens": 9, "forecast": "1"}
answer = client.post("/runs/new/", data)
assert answer.status_code == 200 and "618,300" in answer.text
look("forecast")
print(json.dumps(seen))
"""


@pytest.mark.django_db(transaction=True)
def test_no_page_and_no_check_loads_what_only_models_need() -> None:
    make_seed()
    make_user("olga", Role.OPERATOR)
    done = subprocess.run(
        [sys.executable, "-c", START],
        cwd=ROOT,
        env=worker_environment() | {"DJANGO_SETTINGS_MODULE": "webapp.settings"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = done.stdout.splitlines()[-1]
    assert seen == '{"check": [], "web": [], "pages": [], "forecast": []}'
