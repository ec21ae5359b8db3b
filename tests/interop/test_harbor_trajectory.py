"""Harbor's own model takes the trajectories of our solver."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.usage import RequestUsage

from evolution.agents.trajectory import Observed, Story, atif
from tests.interop.conftest import Harbor

pytestmark = pytest.mark.interop


def test_harbor_reads_a_trajectory(harbor: Harbor, tmp_path: Path) -> None:
    story = Story("Count the lines.")
    story.responses = [
        ModelResponse(
            [
                ThinkingPart("first look"),
                TextPart("I look."),
                ToolCallPart("run", {"command": "ls"}, "by-chance-1"),
                ToolCallPart("run", "not json", "by-chance-2"),
            ],
            usage=RequestUsage(input_tokens=10, output_tokens=5, cache_read_tokens=3),
        ),
        ModelResponse([ToolCallPart("nowhere", {}, "by-chance-3")]),
        ModelResponse([TextPart("Done.")]),
    ]
    story.observed = [Observed("by-chance-1", "ls", "exit status 0", 0.1)]
    path = tmp_path / "trajectory.json"
    path.write_text(json.dumps(atif(story, agent="ratchet-terminal", version="1", model="m")))
    assert harbor.ask("trajectory", path) == {
        "version": "ATIF-v1.8",
        "sources": ["user", "agent", "agent", "agent"],
        "observed": [False, True, False, False],
    }
