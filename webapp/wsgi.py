"""The web process, for a WSGI server. Live pages need the ASGI one."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

from webapp.keys import forget_keys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.settings")
application = get_wsgi_application()
forget_keys()
