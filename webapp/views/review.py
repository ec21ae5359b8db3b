"""The review queue and focus mode: claim, decide, undo, skip."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from webapp.forms.review import ReviewForm
from webapp.http import Request, allow, answer, wants_fragment
from webapp.models import Environment, Review, Role
from webapp.models.review import REASONS
from webapp.presentation import diffs
from webapp.selectors import detail, lineages, queue
from webapp.services import reviews
from webapp.services.errors import InvalidInput, NotAllowed, StaleReview
from webapp.views.environments import changed_words, file_diffs
from webapp.views.gates import answered_gates

SKIP_CAP = 500
FILE_LINES = 60
"""Lines of one changed file that focus mode shows."""

SHOWN_LINES = 400
"""Lines of changed files that focus mode shows; the rest is a click away."""


@allow(Role.REVIEWER)
def review_queue(request: Request) -> HttpResponseBase:
    """What waits for a decision, oldest first, and who holds it."""
    context = {
        "rows": queue.queue_rows(request.user),
        "waiting": queue.count_waiting(),
        "last": queue.last_decision(request.user),
        "skipped": _skipped(request),
    }
    return answer(request, "webapp/review_queue.html", context, fragment="queue")


@allow(Role.REVIEWER, "GET", "HEAD", "POST")
def review_next(request: Request) -> HttpResponseBase:
    """POST holds the next free environment and goes there; GET changes nothing."""
    if request.method != "POST":
        return redirect("review_queue")
    if request.POST.get("again"):
        request.session["skipped"] = []
    found = reviews.claim_next(request.user, skip=_skipped(request))
    return redirect("review_focus", pk=found.pk) if found else redirect("review_queue")


@allow(Role.REVIEWER)
def review_focus(request: Request, pk: int) -> HttpResponseBase:
    """One environment, the evidence and the decision on one page."""
    context = _focus(request, detail.get_environment(pk))
    return answer(request, "webapp/review_focus.html", context, fragment="focus")


@allow(Role.REVIEWER, "POST")
def review_decide(request: Request, pk: int) -> HttpResponseBase:
    """Record the decision on the digest that was shown, then show the next item."""
    form = ReviewForm(request.POST)
    if form.is_valid():
        said = form.cleaned_data
        try:
            chosen = {"reasons": said["reasons"], "comment": said["comment"]}
            reviews.decide(pk, request.user, said["verdict"], said["digest"], **chosen)
        except InvalidInput as error:
            form.add_error(error.field if error.field in form.fields else None, str(error))
        except StaleReview as error:
            return _stale(request, pk, str(error))
        else:
            return _show_next(request)
    context = _focus(request, detail.get_environment(pk), form)
    return answer(request, "webapp/review_focus.html", context, fragment="decision", status=422)


@allow(Role.REVIEWER, "POST")
def review_undo(request: Request, pk: int) -> HttpResponseBase:
    """Take a decision back and show its environment again."""
    review = get_object_or_404(Review.objects.only("id", "environment_id"), pk=pk)
    try:
        reviews.undo(pk, request.user)
        reviews.claim(review.environment_id, request.user)
    except (StaleReview, NotAllowed) as error:
        return _stale(request, review.environment_id, str(error))
    return _go(request, detail.get_environment(review.environment_id))


@allow(Role.REVIEWER, "POST")
def review_skip(request: Request, pk: int) -> HttpResponseBase:
    """Leave an environment to others; personal, and no review."""
    request.session["skipped"] = [*_skipped(request), pk][-SKIP_CAP:]
    reviews.release(pk, request.user)
    return _show_next(request)


@allow(Role.REVIEWER, "POST")
def review_claim(request: Request, pk: int) -> HttpResponseBase:
    """Hold the environment, or hold it longer; 409 when somebody else does."""
    shown = get_object_or_404(Environment.objects.only("id", "review", "parent_id"), pk=pk)
    status = 200
    try:
        if shown.review == "unreviewed":
            reviews.claim(pk, request.user)
    except StaleReview:
        status = 409
    context = {"environment": shown, "lease": queue.current_lease(shown)}
    return answer(request, "webapp/review_focus.html", context, fragment="lease", status=status)


@allow(Role.REVIEWER, "POST")
def review_release(request: Request, pk: int) -> HttpResponse:
    """Give the environment back when the page is left."""
    reviews.release(pk, request.user)
    return HttpResponse(status=204)


def _show_next(request: Request) -> HttpResponseBase:
    return _go(request, reviews.claim_next(request.user, skip=_skipped(request)))


def _go(request: Request, shown: Environment | None) -> HttpResponseBase:
    target = reverse("review_focus", args=[shown.pk]) if shown else reverse("review_queue")
    if not wants_fragment(request):
        return redirect(target)
    current = detail.get_environment(shown.pk) if shown else None
    context = _focus(request, current)
    response = answer(request, "webapp/review_focus.html", context, fragment="focus")
    response.headers["HX-Push-Url"] = target
    return response


def _stale(request: Request, pk: int, message: str) -> HttpResponseBase:
    """The environment as it is now, with one line that says why nothing was done."""
    if not wants_fragment(request):
        messages.error(request, message)
    context = _focus(request, detail.get_environment(pk)) | {"stale": message}
    return answer(request, "webapp/review_focus.html", context, fragment="focus", status=409)


def _skipped(request: Request) -> list[int]:
    return [pk for pk in request.session.get("skipped", []) if isinstance(pk, int)]


def _focus(
    request: Request, shown: Environment | None, form: ReviewForm | None = None
) -> dict[str, Any]:
    context: dict[str, Any] = {
        "environment": shown,
        "rows": queue.queue_rows(
            request.user, skip=_skipped(request), limit=queue.NEXT_ROWS, free_only=True
        ),
        "waiting": queue.count_waiting(),
        "last": queue.last_decision(request.user),
    }
    if shown is None:
        return context
    parent = detail.get_parent(shown)
    before, after = detail.sequence_change(parent.sequence if parent else [], shown.sequence)
    changed, left_out = _within(file_diffs(parent, shown, cap=FILE_LINES) if parent else ())
    return context | {
        "form": form,
        "parent": parent,
        "before": before,
        "after": after,
        "words": changed_words(parent, shown),
        "file_diffs": changed,
        "left_out": left_out,
        "gates": answered_gates(shown.current_verification),
        "demands": detail.demand_rows(shown),
        "difficulty": detail.difficulty_of(shown),
        "ancestry": lineages.ancestry(shown),
        "feedback": queue.review_feedback(shown),
        "lease": queue.current_lease(shown),
        "standing": queue.standing_review(shown),
        "reasons": REASONS,
        "chosen_reasons": form.data.getlist("reasons") if form else [],  # type: ignore[attr-defined]
    }


def _within(found: tuple[diffs.FileDiff, ...]) -> tuple[list[diffs.FileDiff], int]:
    """As many changed files as fit the page, long ones last; the instruction is shown as words."""
    rest = [one for one in found if one.change.path != "instruction.md"]
    rest.sort(key=lambda one: bool(one.cut))
    kept: list[diffs.FileDiff] = []
    lines = 0
    for one in rest:
        lines += len(one.lines)
        if lines > SHOWN_LINES and kept:
            break
        kept.append(one)
    return kept, len(rest) - len(kept)
