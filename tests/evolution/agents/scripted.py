"""Models that answer by a script: functions of what they are sent, in the place of real ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.agent import AgentRunResult
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import Model
from pydantic_ai.models.function import AgentInfo, FunctionModel

from evolution.llm.calls import Role

Speaker = Callable[[list[ModelMessage]], ModelResponse]


def says(*parts: ModelResponsePart | str) -> ModelResponse:
    """An answer of these parts; text for a plain one."""
    return ModelResponse([TextPart(p) if isinstance(p, str) else p for p in parts])


def calls(tool: str, **arguments: object) -> ToolCallPart:
    """A call of a tool."""
    return ToolCallPart(tool, json.dumps(arguments))


def in_turn(*answers: ModelResponse) -> Speaker:
    """Gives these answers by the number of answers given so far; the last one again and again."""

    def speak(messages: list[ModelMessage]) -> ModelResponse:
        given = sum(isinstance(message, ModelResponse) for message in messages)
        return answers[min(given, len(answers) - 1)]

    return speak


def text_of(messages: list[ModelMessage]) -> str:
    """All that a model was sent, as text."""
    return "\n".join(str(getattr(part, "content", "")) for m in messages for part in m.parts)


@dataclass
class ScriptedModels:
    """Implements `Models` over scripts by role; keeps what was sent, and where it stood."""

    scripts: Mapping[Role, Speaker]
    sent: list[tuple[Role, str, list[ModelMessage]]] = field(default_factory=list)
    places: list[tuple[str, str]] = field(default_factory=list)
    _place: str = ""

    def model_for(self, role: Role) -> Model:
        """The scripted model of a role."""

        def speak(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
            self.sent.append((role, self._place, list(messages)))
            return self.scripts[role](messages)

        return FunctionModel(speak, model_name=f"scripted-{role.value}")

    @contextmanager
    def at(self, place: str, *, prompt_digest: str = "") -> Iterator[None]:
        """Note where the requests stand."""
        self.places.append((place, prompt_digest))
        before, self._place = self._place, place
        yield
        self._place = before

    def run[T](self, agent: Agent[Any, T], prompt: str, **options: Any) -> AgentRunResult[T]:
        """Run an agent in a loop of its own."""
        return asyncio.run(agent.run(prompt, **options))

    def roles(self) -> list[Role]:
        """Who was asked, in order, once per conversation."""
        found: list[tuple[Role, str]] = []
        for role, place, _ in self.sent:
            if not found or found[-1] != (role, place):
                found.append((role, place))
        return [role for role, _ in found]
