"""What an export is told about a dataset: plain values, frozen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExportedDemand:
    """A live demand, as a trainer reads it in the manifest."""

    id: str
    operator: str
    title: str
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExportedDifficulty:
    """One number about an environment's difficulty, with its n and interval where it has one.

    `measure` is "demands", "d_t", "pass_rate" …; `solver` is empty where no solver is involved.
    """

    measure: str
    value: float
    solver: str = ""
    n: int = 0
    low: float | None = None
    high: float | None = None
    basis: str = ""


@dataclass(frozen=True, slots=True)
class ExportedEnvironment:
    """One environment of a frozen dataset.

    `folder` is its folder's name in the export, `digest` ours, `root` and `parent` are digests too;
    a seed has no parent. `task_name` is `[task].name`, empty when there is none. `verified_by` are
    the sandboxes in which the verdict was found, `is_verified_on_image` says whether that was on
    the environment's own image throughout; None where it is not known.
    """

    folder: str
    digest: str
    harbor_digest: str
    task_name: str
    title: str
    root: str
    parent: str
    generation: int
    licence: str
    origin: str
    direction: str = ""
    aspect: str = ""
    effort: str = ""
    operators: tuple[str, ...] = ()
    demands: tuple[ExportedDemand, ...] = ()
    difficulty: tuple[ExportedDifficulty, ...] = ()
    verified_by: str = ""
    is_verified_on_image: bool | None = None


@dataclass(frozen=True, slots=True)
class FrozenDataset:
    """A dataset version. `frozen_at` is ISO 8601, and part of what was frozen.

    `slug` and `version` make the names of files and folders; `organisation` stands before the slug
    in Harbor's names.
    """

    name: str
    slug: str
    version: str
    digest: str
    frozen_at: str
    environments: tuple[ExportedEnvironment, ...]
    description: str = ""
    organisation: str = "ratchet"

    @property
    def folder(self) -> str:
        """The one folder that an archive unpacks to."""
        return f"{self.slug}-v{self.version}"

    @property
    def basis(self) -> str:
        """What the verdicts rest on, in one sentence."""
        known = [environment.is_verified_on_image for environment in self.environments]
        parts = []
        if count := known.count(False):
            who, whose = (
                ("1 environment was", "its")
                if count == 1
                else (f"{count} environments were", "their")
            )
            parts.append(f"{who} verified on the host's /usr, not on {whose} image")
        if count := known.count(None):
            parts.append(f"of {count} it is not known where they were verified")
        if not parts:
            return "Every environment was verified on its own image."
        return f"{'; '.join(parts)}.".capitalize()

    @property
    def harbor_name(self) -> str:
        """The dataset's name as Harbor wants it."""
        return f"{self.organisation}/{self.slug}"
