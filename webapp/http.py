"""From request to answer: who may come in, and whether a page or a fragment goes out."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from webapp.models import Role, User

View = Callable[..., HttpResponseBase]
READ = ("GET", "HEAD")
QUERY_CAP = 4000
"""The longest query string, in characters: pages repeat it in every link that keeps the filters."""
PUBLIC = 0
"""The required role of a page that needs no sign-in."""


class Request(HttpRequest):
    """A request inside the sign-in wall, as the middleware leaves it."""

    htmx: HtmxDetails
    user: User
    """An `AnonymousUser` outside the wall: `allow` is the gate."""


def allow(role: Role, *methods: str) -> Callable[[View], View]:
    """Let people of this role and above in, with these methods (GET and HEAD when none is named).

    A stranger is sent to the sign-in page, a person of a lower role gets 403, another method 405.
    The role stays readable as `required_role` on the view.
    """
    permitted = methods or READ

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def guarded(request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if not cast(Any, request.user).is_authenticated:
                return _to_sign_in(request)
            if not request.user.has_role(role):
                raise PermissionDenied(f"This needs the role {role.label.lower()}.")
            if request.method not in permitted:
                return HttpResponseNotAllowed(permitted)
            if len(request.META["QUERY_STRING"]) > QUERY_CAP:
                return HttpResponse("The address is too long; filter by less.\n", status=414)
            return view(request, *args, **kwargs)

        cast(Any, guarded).required_role = role
        return guarded

    return decorate


def public(view: View) -> View:
    """Mark a view as open to everybody."""
    cast(Any, view).required_role = PUBLIC
    return view


def wants_fragment(request: HttpRequest) -> bool:
    """Whether htmx asks for a part of the page, not for the page."""
    htmx = cast(Request, request).htmx
    return (
        bool(htmx)
        and not htmx.boosted
        and not htmx.history_restore_request
        and request.headers.get("HX-Request-Type") != "full"
    )


def answer(
    request: HttpRequest,
    template: str,
    context: dict[str, Any],
    *,
    fragment: str = "",
    status: int = 200,
) -> HttpResponse:
    """The page, or its partial `fragment` when htmx asks for one."""
    name = f"{template}#{fragment}" if fragment and wants_fragment(request) else template
    response = render(request, name, context, status=status)
    patch_vary_headers(response, ["HX-Request", "HX-Request-Type"])
    response.headers.setdefault("Cache-Control", "private, no-cache")
    return response


def attachment(content: bytes, name: str, content_type: str) -> HttpResponse:
    """Bytes that a browser saves and never shows."""
    response = HttpResponse(content, content_type=content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{safe_name(name)}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Content-Length"] = str(len(content))
    return response


def stream(
    request: HttpRequest, chunks: Iterable[bytes], name: str, content_type: str
) -> StreamingHttpResponse:
    """A download that is sent while it is made, never held whole."""
    body = _pulled(chunks) if isinstance(request, ASGIRequest) else chunks
    response = StreamingHttpResponse(body, content_type=content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{safe_name(name)}"'
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


async def _pulled(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    pull = sync_to_async(functools.partial(next, iter(chunks), b""))
    while chunk := await pull():
        yield chunk


def safe_name(name: str) -> str:
    """A file name for a header: letters, digits, dot, dash and underscore only."""
    kept = "".join(c if (c.isascii() and c.isalnum()) or c in "._-" else "-" for c in name)
    return kept.strip(".-")[-150:] or "file"


def _to_sign_in(request: Request) -> HttpResponseBase:
    if request.htmx:
        current = request.htmx.current_url_abs_path or "/"
        return HttpResponseClientRedirect(redirect_to_login(current).url)
    target = request.get_full_path() if request.method in READ else "/"
    return redirect_to_login(target)
