"""The table of environments, and each environment's tabs."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.http.response import HttpResponseBase

from webapp.forms.filters import EnvironmentFilterForm, read_filter, read_key
from webapp.http import Request, allow, answer, attachment
from webapp.models import Environment, Role
from webapp.presentation import diffs, markdown
from webapp.presentation.highlighting import highlight_lines
from webapp.presentation.text import decode, excerpt, hex_dump, is_binary
from webapp.selectors import bundles, detail, environments, lineages, matrix, queue

WHOLE_LINES = 6_000
"""Lines of one file's difference when it is looked at alone."""

TABS = (
    ("overview", "environment", "Overview"),
    ("files", "environment_files", "Files"),
    ("diff", "environment_diff", "Diff"),
    ("gates", "environment_gates", "Gates"),
    ("trials", "environment_trials", "Trials"),
    ("making", "environment_making", "Making"),
    ("lineage", "environment_lineage", "Lineage"),
    ("reviews", "environment_reviews", "Reviews"),
    ("history", "environment_history", "History"),
)


@allow(Role.VIEWER)
def environment_list(request: Request) -> HttpResponseBase:
    """The filterable table, a page at a time."""
    chosen = read_filter(request.GET)
    keys = {"before": read_key(request.GET, "before"), "after": read_key(request.GET, "after")}
    context = {
        "chosen": chosen,
        "page": environments.page_of(chosen, **keys),
        "facets": environments.facets(chosen),
        "form": EnvironmentFilterForm(request.GET),
    }
    return answer(request, "webapp/environments.html", context, fragment="results")


@allow(Role.VIEWER)
def environment(request: Request, pk: int) -> HttpResponseBase:
    """The overview: instruction, what was changed and why, demands, difficulty, lineage."""
    shown = detail.get_environment(pk)
    parent = detail.get_parent(shown)
    before, after = detail.sequence_change(parent.sequence if parent else [], shown.sequence)
    show_words = parent is not None and request.GET.get("words") == "1"
    context = frame(shown, "overview") | {
        "parent": parent,
        "before": before if parent else (),
        "after": after if parent else detail.sequence_change(shown.sequence, shown.sequence)[0],
        "words": changed_words(parent, shown) if show_words else (),
        "instruction": markdown.render(shown.instruction),
        "demands": detail.demand_rows(shown),
        "difficulty": detail.difficulty_of(shown),
        "ancestry": lineages.ancestry(shown),
        "standing": queue.standing_review(shown),
    }
    return answer(request, "webapp/environment.html", context, fragment="instruction")


@allow(Role.VIEWER)
def files(request: Request, pk: int) -> HttpResponseBase:
    """The file tree, and one file's content."""
    shown = detail.get_environment(pk)
    entries = bundles.manifest(shown)
    path = request.GET.get("path", "instruction.md")
    entry = next((e for e in entries if e.path == path), None)
    if entry is None and "path" in request.GET:
        raise Http404("no such file in this environment")
    context = frame(shown, "files") | {
        "tree": bundles.file_tree(entries),
        "entry": entry,
        "content": _shown_content(entry) if entry else None,
    }
    return answer(request, "webapp/environment_files.html", context, fragment="content")


def _shown_content(entry: diffs.FileEntry) -> dict[str, Any]:
    if entry.link is not None:
        return {"note": f"symbolic link to {entry.link}"}
    if entry.size_bytes > bundles.FILE_CAP_BYTES:
        return {"note": "too large to show: download it"}
    data = bundles.read_shown([entry]).get(entry.digest, b"")
    if is_binary(data):
        return {"note": "binary content, the first 512 bytes", "dump": hex_dump(data)}
    part = excerpt(decode(data))
    return {"lines": highlight_lines(entry.path, part.text), "cut": part.cut}


@allow(Role.VIEWER)
def file_download(request: Request, pk: int) -> HttpResponse:
    """One file's bytes, to be saved, never shown."""
    path = request.GET.get("path", "")
    data = bundles.read_file(detail.get_environment(pk), path)
    if data is None:
        raise Http404("no such file in this environment")
    return attachment(data, path.rsplit("/", 1)[-1], "application/octet-stream")


@allow(Role.VIEWER)
def bundle_download(request: Request, pk: int) -> HttpResponse:
    """The bundle as a Harbor folder in a `.tar.gz`."""
    shown = detail.get_environment(pk)
    folder = folder_name(shown)
    content = bundles.archive(shown, folder)
    return attachment(content, f"{folder}.tar.gz", "application/gzip")


@allow(Role.VIEWER)
def diff(request: Request, pk: int) -> HttpResponseBase:
    """What changed from the parent, or from the root."""
    shown = detail.get_environment(pk)
    against = "root" if request.GET.get("against") == "root" else "parent"
    other = detail.get_root(shown) if against == "root" else detail.get_parent(shown)
    is_split, only = request.GET.get("view") == "split", request.GET.get("path", "")
    context = frame(shown, "diff") | {
        "against": against,
        "is_split": is_split,
        "other": other,
        "file_diffs": file_diffs(other, shown, is_split=is_split, only=only) if other else (),
        "only": only,
        "rates": shown.change_rates.get(against, {}),
    }
    return answer(request, "webapp/environment_diff.html", context, fragment="diff")


def changed_words(parent: Environment | None, shown: Environment) -> tuple[diffs.WordRun, ...]:
    """The instruction with the words that came and went; what stayed is folded."""
    if parent is None:
        return ()
    return diffs.fold_same(diffs.word_diff(parent.instruction, shown.instruction))


def file_diffs(
    old: Environment,
    new: Environment,
    *,
    is_split: bool = False,
    only: str = "",
    cap: int = diffs.LINES_CAP,
) -> tuple[diffs.FileDiff, ...]:
    """The shown differences of all files that differ, or of `only` one, that one whole."""
    changes = diffs.changed_files(bundles.manifest(old), bundles.manifest(new))
    if only:
        changes, cap = tuple(c for c in changes if c.path == only), WHOLE_LINES
    entries = [entry for change in changes for entry in (change.old, change.new) if entry]
    contents = bundles.read_shown(entries)
    return tuple(diffs.file_diff(c, contents, is_split=is_split, cap=cap) for c in changes)


def folder_name(shown: Environment) -> str:
    """The folder of an environment in a download."""
    return f"{shown.name.rsplit('/', 1)[-1]}-g{shown.generation}-{shown.short_digest}"


@allow(Role.VIEWER)
def trials(request: Request, pk: int) -> HttpResponseBase:
    """All trials of one run of the gates, and trials that were measured elsewhere."""
    shown = detail.get_environment(pk)
    rows = matrix.list_verifications(shown)
    verification = matrix.choose_verification(shown, rows, request.GET.get("v", ""))
    gate = request.GET.get("gate", "").replace("\0", "")
    found = detail.light_trials().filter(verification=verification).order_by("id")
    context = frame(shown, "trials") | {
        "verifications": rows,
        "verification": verification,
        "trials": (found.filter(gate=gate) if gate else found)[:500],
        "gate": gate,
        "measured": shown.measured.select_related("solver").order_by("solver", "number")[:500],
    }
    return answer(request, "webapp/environment_trials.html", context)


@allow(Role.VIEWER)
def lineage_tab(request: Request, pk: int) -> HttpResponseBase:
    """The way from the root to here, the siblings and the children."""
    shown = detail.get_environment(pk)
    near = environments.list_rows().filter(lineage_id=shown.lineage_id)
    siblings = near.filter(parent=shown.parent_id).exclude(pk=pk).order_by("path")
    context = frame(shown, "lineage") | {
        "ancestry": lineages.ancestry(shown),
        "siblings": siblings[:100] if shown.parent_id else (),
        "children": near.filter(parent=pk).order_by("path")[:100],
    }
    return answer(request, "webapp/environment_lineage.html", context)


@allow(Role.VIEWER)
def reviews(request: Request, pk: int) -> HttpResponseBase:
    """Every decision about this environment."""
    shown = detail.get_environment(pk)
    context = frame(shown, "reviews") | {"reviews": detail.review_rows(shown)}
    return answer(request, "webapp/environment_reviews.html", context)


@allow(Role.VIEWER)
def history(request: Request, pk: int) -> HttpResponseBase:
    """Everything that happened to this environment."""
    shown = detail.get_environment(pk)
    rows = detail.history_rows(shown, before=read_key(request.GET, "before"), limit=101)
    context = frame(shown, "history") | {
        "events": rows[:100],
        "before": rows[99].pk if len(rows) > 100 else None,
    }
    return answer(request, "webapp/environment_history.html", context)


def frame(shown: Environment, tab: str) -> dict[str, Any]:
    """What every tab needs: the environment, the tabs, whether it waits for a review."""
    is_waiting = (
        shown.verification == "valid" and shown.review == "unreviewed" and not shown.is_seed
    )
    return {"environment": shown, "tabs": TABS, "tab": tab, "is_waiting": is_waiting}
