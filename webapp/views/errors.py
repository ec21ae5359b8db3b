"""The pages for what went wrong."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.loader import render_to_string

from webapp.http import public


@public
def forbidden(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """403: the role does not reach."""
    context = {"message": str(exception or "")}
    return render(request, "webapp/403.html", context, status=403)


@public
def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """404: nothing is there."""
    reason = exception.args[0] if exception and exception.args else ""
    context = {"message": reason if isinstance(reason, str) else ""}
    return render(request, "webapp/404.html", context, status=404)


@public
def broken(request: HttpRequest) -> HttpResponse:
    """500: our fault. Needs neither the database nor the session."""
    return HttpResponse(render_to_string("webapp/500.html"), status=500)


@public
def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403: the form was too old, or came from elsewhere."""
    message = "This form has expired. Go back, reload the page and try again."
    return render(request, "webapp/403.html", {"message": message}, status=403)
