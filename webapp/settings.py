"""Settings, from environment variables and `.env`. The defaults are safe on loopback."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Any

import environ
from django.core.exceptions import ImproperlyConfigured
from django.utils.csp import CSP

from sandbox.choice import SandboxChoice

BASE_DIR = Path(__file__).resolve().parent.parent
env = environ.Env()
environ.Env.read_env(BASE_DIR / ".env")

# --- where everything is kept --------------------------------------------------------------------
RATCHET_HOME = (BASE_DIR / env.str("RATCHET_HOME", default="var")).resolve()
RATCHET_SANDBOX = env.str("RATCHET_SANDBOX", default="") or "auto"
if RATCHET_SANDBOX not in list(SandboxChoice):
    raise ImproperlyConfigured(
        f"RATCHET_SANDBOX={RATCHET_SANDBOX[:40]!r} is no sandbox: {', '.join(SandboxChoice)}"
    )
RATCHET_DOCKER_RUNTIME = env.str("RATCHET_DOCKER_RUNTIME", default="")
RATCHET_IMAGES = env.str("RATCHET_IMAGES", default="")
RATCHET_MODELS = env.str("RATCHET_MODELS", default="")
RATCHET_PRICES = env.str("RATCHET_PRICES", default="")

# --- who may reach us ----------------------------------------------------------------------------
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "[::1]", "testserver"})
DEBUG = env.bool("DEBUG", default=False)
ALLOWED_HOSTS: list[str] = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
IS_LOOPBACK_ONLY = set(ALLOWED_HOSTS) <= LOOPBACK_HOSTS
CSRF_TRUSTED_ORIGINS: list[str] = env.list("CSRF_TRUSTED_ORIGINS", default=[])
CSRF_FAILURE_VIEW = "webapp.views.errors.csrf_failed"


def _read_or_make_secret_key(path: Path) -> str:
    """The key of this home, made once, readable by its owner only. For loopback use."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            key = path.read_text().strip()
            if key:
                return key
            descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC)  # its maker was killed half-way
        with os.fdopen(descriptor, "w") as file:
            key = secrets.token_urlsafe(50)
            file.write(key)
        return key
    except OSError as error:
        raise ImproperlyConfigured(
            f"cannot keep a secret key in {path}: {error.strerror}"
            " (set RATCHET_HOME to a writable folder, or set SECRET_KEY)"
        ) from error


SECRET_KEY = env.str("SECRET_KEY", default="")
if not SECRET_KEY:
    if not IS_LOOPBACK_ONLY:
        raise ImproperlyConfigured(
            "ALLOWED_HOSTS names hosts beyond this machine: set SECRET_KEY too"
            ' (python -c "import secrets; print(secrets.token_urlsafe(50))")'
        )
    SECRET_KEY = _read_or_make_secret_key(RATCHET_HOME / "secret-key")
if DEBUG and not IS_LOOPBACK_ONLY:
    raise ImproperlyConfigured("DEBUG shows secrets: unset it, or ALLOWED_HOSTS")

# Beyond loopback we expect HTTPS, by a proxy in front; HTTPS=off says that there is none.
HTTPS = env.bool("HTTPS") if env.str("HTTPS", default="") else not IS_LOOPBACK_ONLY
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS
if env.bool("TRUST_PROXY", default=False):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CSP: dict[str, Any] = {
    "default-src": [CSP.NONE],
    "script-src": [CSP.SELF],
    "style-src": [CSP.SELF],
    "img-src": [CSP.SELF, "data:"],
    "font-src": [CSP.SELF],
    "connect-src": [CSP.SELF],
    "form-action": [CSP.SELF],
    "frame-ancestors": [CSP.NONE],
    "base-uri": [CSP.NONE],
}

# --- the application -----------------------------------------------------------------------------
INSTALLED_APPS = [
    "webapp.apps.WebappConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "django_htmx",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.middleware.csp.ContentSecurityPolicyMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "webapp.urls"
ASGI_APPLICATION = "webapp.asgi.application"
WSGI_APPLICATION = "webapp.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]
AUTH_USER_MODEL = "webapp.User"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "login"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- static files: straight from /static, or collected into STATIC_ROOT with hashed names --------
STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
_COLLECTED = Path(env.str("STATIC_ROOT", default=str(BASE_DIR / "staticfiles")))
IS_STATIC_COLLECTED = (
    env.bool("COLLECT_STATIC", default=False) or (_COLLECTED / "staticfiles.json").exists()
)
STATIC_ROOT = _COLLECTED if IS_STATIC_COLLECTED else None
WHITENOISE_USE_FINDERS = not IS_STATIC_COLLECTED
MEDIA_ROOT = RATCHET_HOME / "files"
_STATIC_STORAGE = (
    "whitenoise.storage.CompressedManifestStaticFilesStorage"
    if IS_STATIC_COLLECTED
    else "django.contrib.staticfiles.storage.StaticFilesStorage"
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _STATIC_STORAGE},
}

# --- the database: a server that is given, or the embedded one -----------------------------------
DATABASE_URL = env.str("DATABASE_URL", default="")
IS_DATABASE_EMBEDDED = not DATABASE_URL


def _read_database_url() -> dict[str, Any]:
    """DATABASE_URL in Django's words. An error does not repeat it: it may hold a password."""
    found: dict[str, Any] = {}
    if DATABASE_URL.partition("://")[0] in ("postgres", "postgresql", "psql", "pgsql"):
        with contextlib.suppress(ValueError):
            found = env.db_url("DATABASE_URL")
    if not found.get("NAME"):
        raise ImproperlyConfigured(
            "DATABASE_URL is no address of a PostgreSQL database, such as"
            " postgres://USER:PASSWORD@HOST:5432/NAME (unset it for the embedded one)"
        )
    return found


_EMBEDDED_NAME = env.str("EMBEDDED_POSTGRES_DATABASE", default="ratchet")
EMBEDDED_POSTGRES_IS_DURABLE = env.bool("EMBEDDED_POSTGRES_IS_DURABLE", default=True)
DATABASES: dict[str, dict[str, Any]] = {
    "default": (
        {"ENGINE": "webapp.embedded.database", "NAME": _EMBEDDED_NAME, "USER": "ratchet"}
        if IS_DATABASE_EMBEDDED
        else {**_read_database_url(), "CONN_HEALTH_CHECKS": True}
    )
}

# --- the broker: one that is given, or the embedded one ------------------------------------------
CELERY_BROKER_URL = env.str("CELERY_BROKER_URL", default="")
IS_BROKER_EMBEDDED = not CELERY_BROKER_URL
BROKER_FOLDER = RATCHET_HOME / "broker"

# --- logs ----------------------------------------------------------------------------------------
LOG_LEVEL = env.str("LOG_LEVEL", default="INFO").upper()
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "webapp.logs.OneLineFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s %(message)s",
            "datefmt": "%Y-%m-%dT%H:%M:%S",
        }
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "django": {"handlers": [], "level": LOG_LEVEL, "propagate": True},
        "django.server": {"handlers": [], "level": LOG_LEVEL, "propagate": True},
        "django.request": {"level": "ERROR"},  # a refused request is the page's to tell
        "uvicorn.error": {"level": "WARNING"},
        "celery": {"level": "WARNING"},
        "kombu": {"level": "WARNING"},
    },
}
