"""The web process, for an ASGI server such as uvicorn."""

from __future__ import annotations

import os

from django.core.asgi import get_asgi_application

from webapp.keys import forget_keys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
application = get_asgi_application()
forget_keys()
