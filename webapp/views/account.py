"""Signing in and out, and the choice of light or dark."""

from __future__ import annotations

from django.contrib.auth import login, logout
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from webapp.forms.signin import SignInForm
from webapp.http import Request, allow, public
from webapp.models import Role

THEMES = ("light", "dark", "auto")


@public
@sensitive_post_parameters("password")
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def sign_in(request: HttpRequest) -> HttpResponseBase:
    """The sign-in page; leads back to where the person wanted to go."""
    target = _local(request, request.POST.get("next") or request.GET.get("next") or "/")
    form = SignInForm(request, data=request.POST or None)
    if request.method == "POST" and form.is_valid():
        login(request, form.get_user())
        return redirect(target)
    status = 429 if request.method == "POST" and form.is_throttled else 200
    context = {"form": form, "next": target}
    return render(request, "webapp/sign_in.html", context, status=status)


@allow(Role.VIEWER, "POST")
def sign_out(request: Request) -> HttpResponseBase:
    """End the session."""
    logout(request)
    return redirect("login")


@public
@require_POST
def set_theme(request: HttpRequest) -> HttpResponse:
    """Remember light, dark or the system's choice in a cookie."""
    theme = request.POST.get("theme", "auto")
    response = redirect(_local(request, request.POST.get("next") or "/"))
    if theme in THEMES:
        response.set_cookie("theme", theme, max_age=31_536_000, samesite="Lax", httponly=False)
    return response


def _local(request: HttpRequest, target: str) -> str:
    is_local = url_has_allowed_host_and_scheme(
        target, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return target if is_local else "/"
