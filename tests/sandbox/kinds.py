"""The kinds of back-ends that a suite is run on, with the markers of what each needs."""

from __future__ import annotations

import pytest

KINDS = pytest.mark.parametrize(
    "any_bench",
    [
        pytest.param("bubblewrap", marks=pytest.mark.bubblewrap),
        pytest.param("bubblewrap-image", marks=[pytest.mark.bubblewrap, pytest.mark.docker]),
        pytest.param("docker", marks=pytest.mark.docker),
    ],
    indirect=True,
    scope="session",
)
