"""Bundles as values: digests, texts, edits of task.toml that keep everything else."""

from __future__ import annotations

import tomllib

import pytest

from evolution.bundle import Bundle, BundleError, with_config
from evolution.harbor import included
from sandbox.contracts import SandboxFile
from tests.evolution.sample_bundles import TASK_TOML, sample_bundle


def test_the_digest_covers_paths_modes_links_and_contents_whatever_the_order() -> None:
    bundle = sample_bundle(SandboxFile("environment/alias", link="data"))
    assert Bundle.of(reversed(bundle.files)) == bundle
    changed = [
        sample_bundle(),
        sample_bundle(SandboxFile("environment/alias", link="Dockerfile")),
        sample_bundle(SandboxFile("environment/alias", b"data")),
        sample_bundle(
            SandboxFile("environment/alias", link="data"),
            SandboxFile("solution/solve.sh", bundle.by_path["solution/solve.sh"].data, 0o644),
        ),
    ]
    assert len({bundle.digest, *(other.digest for other in changed)}) == 5


def test_a_link_has_no_mode_of_its_own() -> None:
    one = Bundle.of([SandboxFile("a", link="b"), SandboxFile("b")])
    two = Bundle.of([SandboxFile("a", link="b", mode=0o777), SandboxFile("b")])
    assert one == two


def test_a_path_given_twice_is_refused() -> None:
    with pytest.raises(BundleError, match="twice"):
        Bundle.of([SandboxFile("a", b"1"), SandboxFile("a", link="b")])


def test_harbors_digest_does_not_see_modes_or_other_root_files() -> None:
    bundle = sample_bundle()
    solve = bundle.by_path["solution/solve.sh"]
    other = sample_bundle(SandboxFile(solve.path, solve.data, 0o600), SandboxFile("LICENSE", b"x"))
    assert other.harbor_digest == bundle.harbor_digest
    assert other.digest != bundle.digest


def test_what_is_shown_is_without_canary_and_what_is_kept_is_with_it() -> None:
    text = "<!-- canary GUID 12 -->\n\nDo it.\n"
    bundle = sample_bundle(SandboxFile("instruction.md", text.encode()))
    assert bundle.instruction == text
    assert bundle.displayed_instruction == "Do it.\n"


def test_ignored_tests_are_not_uploaded() -> None:
    bundle = sample_bundle(
        SandboxFile("tests/.harborignore", b"*.tmp\n/cache/\n!keep.tmp\n"),
        SandboxFile("tests/a.tmp"),
        SandboxFile("tests/keep.tmp"),
        SandboxFile("tests/cache/x"),
    )
    assert [file.path for file in included(bundle.files, "tests")] == ["keep.tmp", "test.sh"]


def test_an_edit_of_task_toml_keeps_comments_and_everything_else() -> None:
    edited = with_config(
        sample_bundle(),
        {
            ("artifacts",): ["/app/out", "/app/log"],
            ("metadata", "ratchet", "generation"): 1,
            ("metadata", "ratchet", "sequence"): [{"scenario": "a", "skill": "b"}],
            ("agent", "timeout_sec"): None,
            ("solution", "env", "X"): "1",
        },
    )
    text = edited.text("task.toml")
    assert "# a comment that must survive" in text
    wanted = tomllib.loads(TASK_TOML)
    wanted["artifacts"] = ["/app/out", "/app/log"]
    wanted["metadata"]["ratchet"] |= {
        "generation": 1,
        "sequence": [{"scenario": "a", "skill": "b"}],
    }
    del wanted["agent"]["timeout_sec"]
    wanted["solution"] = {"env": {"X": "1"}}
    assert tomllib.loads(text) == wanted
    lines = set(TASK_TOML.splitlines()) - {'artifacts = ["/app/out"]', "timeout_sec = 60.0"}
    assert lines <= set(text.splitlines())


def test_an_edit_that_changes_nothing_changes_no_byte() -> None:
    bundle = sample_bundle()
    assert with_config(bundle, {}) == bundle
    assert with_config(bundle, {("environment", "cpus"): 1}) == bundle
    assert with_config(bundle, {("not", "there"): None}) == bundle


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[metadata", ("metadata", "x")),
        ("metadata = 1", ("metadata", "x")),
        ('metadata = "x"', ("metadata", "ratchet", "x")),
        ("[[steps]]\nname = 'a'", ("steps", "x")),
    ],
)
def test_an_edit_that_cannot_be_made_is_refused(text: str, path: tuple[str, ...]) -> None:
    with pytest.raises(BundleError, match=r"task\.toml"):
        with_config(sample_bundle(task_toml=text), {path: 1})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = 1",
        "[x.y]\nz = 1\n",
        "[metadata]\nratchet = {host_root = true}\n",
        "metadata.ratchet.x = 1\n",
        "[[steps]]\nname = 'a'\n",
        "[metadata.ratchet.deep]\nx = 1\n",
        "a = 1\r\n[b]\r\nc = 2\r\n",
    ],
)
def test_an_edit_means_what_was_asked_in_every_form_of_toml(text: str) -> None:
    changes = {("metadata", "ratchet", "generation"): 2, ("artifacts",): ["/x"]}
    edited = with_config(sample_bundle(task_toml=text), changes)
    config = edited.config
    assert config["metadata"]["ratchet"]["generation"] == 2
    assert config["artifacts"] == ["/x"]
    before = tomllib.loads(text)
    for key in before.keys() - {"metadata"}:
        assert config[key] == before[key]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"a = [", "not valid TOML"),
        (b"a = 1\na = 2", "not valid TOML"),
        (b"\xff\xfea = 1", "not UTF-8"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
        (b"#" * 5_000_000, "longer than"),
    ],
)
def test_a_broken_task_toml_is_one_plain_refusal(data: bytes, reason: str) -> None:
    with pytest.raises(BundleError, match=reason):
        assert sample_bundle(SandboxFile("task.toml", data)).config


def test_a_linked_task_toml_says_what_its_target_says() -> None:
    files = [file for file in sample_bundle().files if file.path != "task.toml"]
    kept = SandboxFile("real.toml", TASK_TOML.encode(), 0o600)
    linked = Bundle.of([*files, kept, SandboxFile("task.toml", link="real.toml")])
    assert linked.config == sample_bundle().config
    edited = with_config(linked, {("task", "version"): "2"})
    assert edited.config["task"]["version"] == "2"
    assert (edited.by_path["task.toml"].link, edited.by_path["task.toml"].mode) == (None, 0o600)
    nowhere = Bundle.of([*files, SandboxFile("task.toml", link="gone.toml")])
    with pytest.raises(BundleError, match="leads to no file"):
        _ = nowhere.config


def test_the_instruction_of_several_steps_is_that_of_all() -> None:
    files = [
        SandboxFile("steps/one/instruction.md", b"Begin.\n"),
        SandboxFile("steps/two/instruction.md", b"End.\n"),
    ]
    assert Bundle.of(files).instruction == "## one\n\nBegin.\n\n\n## two\n\nEnd.\n"
    with pytest.raises(BundleError, match=r"instruction\.md: missing"):
        _ = Bundle.of([]).instruction
