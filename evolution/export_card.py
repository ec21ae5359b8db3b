"""The README of an exported dataset: what it holds, under which licences, and how to use it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from evolution.export_values import FrozenDataset

_MARKUP = re.compile(r"([\\`*_{}\[\]<>()#+!|~])")
_SPACE = re.compile(r"\s+")


def card(dataset: FrozenDataset, marked: Mapping[str, tuple[str, ...]]) -> str:
    """The card in Markdown. `marked` are the files with a canary, by environment folder."""
    environments = dataset.environments
    roots = {environment.root for environment in environments}
    parts = [
        f"# {_plain(dataset.name)}, version {_plain(dataset.version)}",
        _plain(dataset.description),
        f"{_count(len(environments), 'environment')} of {_count(len(roots), 'lineage')} in Harbor's"
        " layout, frozen at"
        f" {dataset.frozen_at}. Digest `{dataset.digest}`.",
        _table("Generation", (str(e.generation) for e in environments), is_number=True),
        _table("Direction", (e.direction or "seed" for e in environments)),
        _table("Licence", (e.licence or "not stated" for e in environments)),
        f"**Verdicts.** {dataset.basis} `manifest.json` names the sandboxes of each.",
        _canary_warning(marked),
        _USE.format(slug=dataset.slug),
        _FILES,
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _plain(text: str) -> str:
    """Text that nobody wrote for Markdown, on one line, with nothing that Markdown would act on."""
    return _MARKUP.sub(r"\\\1", _SPACE.sub(" ", text).strip())


def _table(head: str, values: Iterable[str], *, is_number: bool = False) -> str:
    counts = Counter(values)
    keys = sorted(counts, key=int) if is_number else sorted(counts)
    rows = [f"| {_plain(key)} | {counts[key]} |" for key in keys]
    return "\n".join([f"| {head} | Environments |", "| --- | ---: |", *rows])


def _canary_warning(marked: Mapping[str, tuple[str, ...]]) -> str:
    count = sum(1 for files in marked.values() if files)
    if not count:
        return ""
    return (
        f"**Canaries.** Of {_count(len(marked), 'environment')}, {count} with canary lines, which"
        " ask that they never appear"
        " in a training corpus. The lines are kept byte for byte; `manifest.json` names the files."
        " Decide before you train on these environments."
    )


_USE = """\
## Use

Each folder below `tasks/` is one environment. From this folder:

```
harbor run --path tasks --agent oracle
harbor run --registry-path registry.json --dataset {slug}
```

Split by `root` in `manifest.json`: environments of one root share their ancestors, and must not
lie on both sides of a split."""

_FILES = """\
## Files

- `tasks/`: the environments, byte for byte as they were approved
- `manifest.json`: digests, lineage, demands, difficulty, licence and origin of each
- `dataset.toml`, `registry.json`: Harbor's own lists
- `checksums.sha256`: check with `sha256sum --check checksums.sha256`"""
