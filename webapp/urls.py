"""Every address of the application."""

from __future__ import annotations

from django.urls import URLPattern, path, re_path

from webapp.views import (
    account,
    audit,
    dashboard,
    datasets,
    environments,
    errands,
    gates,
    imports,
    lineages,
    making,
    models,
    review,
    runs,
    trials,
)

_ENVIRONMENT = "environments/<int:pk>/"

urlpatterns: list[URLPattern] = [
    path("", dashboard.dashboard, name="dashboard"),
    path("healthz", dashboard.healthz, name="healthz"),
    path("signin/", account.sign_in, name="login"),
    path("signout/", account.sign_out, name="sign_out"),
    path("theme/", account.set_theme, name="theme"),
    path("environments/", environments.environment_list, name="environments"),
    path(_ENVIRONMENT, environments.environment, name="environment"),
    path(f"{_ENVIRONMENT}files/", environments.files, name="environment_files"),
    path(f"{_ENVIRONMENT}files/raw/", environments.file_download, name="file_download"),
    path(f"{_ENVIRONMENT}diff/", environments.diff, name="environment_diff"),
    path(f"{_ENVIRONMENT}gates/", gates.gates, name="environment_gates"),
    path(f"{_ENVIRONMENT}gates.json", gates.gates_json, name="gates_json"),
    path(f"{_ENVIRONMENT}errands/", errands.errand_list, name="environment_errands"),
    path(f"{_ENVIRONMENT}errands/<str:kind>/", errands.errand_ask, name="environment_errand"),
    path(f"{_ENVIRONMENT}verify/", gates.verify, name="environment_verify"),
    path(f"{_ENVIRONMENT}making/", making.making, name="environment_making"),
    path(f"{_ENVIRONMENT}making.jsonl", making.making_export, name="making_export"),
    path(f"{_ENVIRONMENT}trials/", environments.trials, name="environment_trials"),
    path(f"{_ENVIRONMENT}lineage/", environments.lineage_tab, name="environment_lineage"),
    path(f"{_ENVIRONMENT}reviews/", environments.reviews, name="environment_reviews"),
    path(f"{_ENVIRONMENT}history/", environments.history, name="environment_history"),
    path(f"{_ENVIRONMENT}download/", environments.bundle_download, name="bundle_download"),
    path("trials/<int:pk>/", trials.trial, name="trial"),
    path("measured/<int:pk>/", trials.measured, name="measured"),
    path("measured/<int:pk>/cast/", trials.measured_cast, name="measured_cast"),
    path("calls/<int:pk>/", making.call, name="call"),
    path("imports/", imports.import_list, name="imports"),
    path("imports/<int:pk>/", imports.import_report, name="import_report"),
    path("lineage/", lineages.lineage_list, name="lineages"),
    path("lineage/<int:pk>/", lineages.lineage, name="lineage"),
    path("lineage/<int:pk>/at/", lineages.lineage_at, name="lineage_at"),
    path("lineage/panel/<int:pk>/", lineages.lineage_panel, name="lineage_panel"),
    path("lineage/children/<int:pk>/", lineages.lineage_children, name="lineage_children"),
    path("review/", review.review_queue, name="review_queue"),
    path("review/next", review.review_next, name="review_next"),
    path("review/<int:pk>/", review.review_focus, name="review_focus"),
    path("review/<int:pk>/decide/", review.review_decide, name="review_decide"),
    path("review/<int:pk>/claim/", review.review_claim, name="review_claim"),
    path("review/<int:pk>/release/", review.review_release, name="review_release"),
    path("review/<int:pk>/skip/", review.review_skip, name="review_skip"),
    path("review/undo/<int:pk>/", review.review_undo, name="review_undo"),
    path("runs/", runs.run_list, name="runs"),
    path("runs/new/", runs.run_new, name="run_new"),
    path("runs/<int:pk>/", runs.run, name="run"),
    path("runs/<int:pk>/live/", runs.run_live, name="run_live"),
    path("runs/<int:pk>/events/", runs.run_events, name="run_events"),
    path("runs/<int:pk>/calls/", making.run_calls, name="run_calls"),
    path("runs/<int:pk>/calls.jsonl", making.run_calls_export, name="run_calls_export"),
    re_path(
        r"^runs/(?P<pk>\d{1,18})/(?P<change>pause|resume|cancel)/$",
        runs.run_change,
        name="run_change",
    ),
    path("datasets/", datasets.dataset_list, name="datasets"),
    path("datasets/freeze/", datasets.dataset_freeze, name="dataset_freeze"),
    path("datasets/<slug:slug>/", datasets.dataset, name="dataset"),
    path("datasets/<slug:slug>/<int:number>/", datasets.dataset_version, name="dataset_version"),
    path(
        "datasets/<slug:slug>/<int:number>/download/",
        datasets.dataset_download,
        name="dataset_download",
    ),
    path("models/", models.model_list, name="models"),
    path("audit/", audit.audit_list, name="audit"),
]

handler403 = "webapp.views.errors.forbidden"
handler404 = "webapp.views.errors.not_found"
handler500 = "webapp.views.errors.broken"
