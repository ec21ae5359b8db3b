"""How every role asks its model: one question, tools perhaps, one typed answer or a plain refusal.

What a model writes is never trusted to be in form: it is told what is wrong and may try again
within small bounds, then the role gives up with one line. What broke on the way to the model is
not handled here: `BudgetStop`, `StepBudgetStop` and `ModelUnavailable` pass through.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic_ai import Agent, ModelRetry, Tool, ToolOutput
from pydantic_ai.agent import AgentRunResult
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from evolution.agents.trimming import Bounds, bounded, readable, size_of
from evolution.llm.calls import CallFailed, CallOutcome, Role
from evolution.plain_text import plain
from evolution.prompts import Prompt

FINISH = "finish"
"""The tool by which every role hands over its answer."""
WRONG_CALLS = 4
"""How often in a row one tool may be called wrongly, or a tool that is not there."""
WRONG_ANSWERS = 3
"""How often an answer that is out of form is sent back."""
NARROWINGS = 3
"""How often a request that does not fit is made shorter, by half each time."""
LAST_TURNS = 3
"""From here on a model is told how many turns are left."""


class Models(Protocol):
    """Where roles find their models; every request of them is kept, counted and paid for there."""

    def model_for(self, role: Role) -> Model:
        """The model that plays a role. Raises ModelConfigError when none does."""
        ...

    def at(self, place: str, *, prompt_digest: str = "") -> AbstractContextManager[None]:
        """Says where in the run the requests inside stand, and whose words they begin with."""
        ...

    def run[T](self, agent: Agent[Any, T], prompt: str, **options: Any) -> AgentRunResult[T]:
        """Run an agent to its end in this thread."""
        ...


@dataclass(frozen=True, slots=True)
class GaveUp:
    """A role that came to no answer, with one line on why."""

    reason: str


class Refusable(Protocol):
    """An answer that may be a refusal, with one line on why."""

    refusal: str


@dataclass(frozen=True)
class Question[Answer]:
    """One thing to be asked. `turns` is how many requests it may take, `check` says in one line
    what is wrong with an answer (the model is told), or None.
    """

    role: Role
    place: str
    prompt: Prompt
    text: str
    answer: type[Answer]
    tools: tuple[Tool[None], ...] = ()
    turns: int = 6
    check: Callable[[Answer], str | None] = field(default=lambda _: None)


def ask[Answer](models: Models, question: Question[Answer], bounds: Bounds) -> Answer | GaveUp:
    """Put the question; the answer in its type, or why there is none."""
    model = BoundedModel(models.model_for(question.role), bounds, question.turns)
    agent = Agent(
        model,
        output_type=ToolOutput(
            question.answer, name=FINISH, description="Hand over your answer.", sequential=True
        ),
        instructions=question.prompt.text,
        tools=question.tools,
        retries={"tools": WRONG_CALLS, "output": WRONG_ANSWERS},
        # Files that were written in the same breath are there before the answer is looked at.
        end_strategy="exhaustive",
        defer_model_check=True,
    )

    @agent.output_validator
    def in_form(answer: Answer) -> Answer:
        said = question.check(answer)
        if said is not None:
            raise ModelRetry(said)
        return answer

    limits = UsageLimits(request_limit=question.turns)
    try:
        with models.at(question.place, prompt_digest=question.prompt.digest):
            return models.run(agent, question.text, usage_limits=limits).output
    except UsageLimitExceeded:
        return GaveUp(f"no answer within {question.turns} turns")
    except UnexpectedModelBehavior as error:
        return GaveUp(f"the model's answers were out of form: {_line(error)}")
    except CallFailed as error:
        return GaveUp(f"the model gave no answer: {_line(error)}")


def make[Answer: Refusable, Made](
    models: Models,
    question: Question[Answer],
    bounds: Bounds,
    made_of: Callable[[Answer], Made | str],
    *,
    gave_up: str,
    refused: str,
) -> Made | str:
    """What is made of the answer, or one line, begun by `gave_up` or `refused`, why there is none.

    `made_of` takes the place of the question's `check`: a text of it says what is wrong.
    """
    kept: list[Made] = []

    def check(answer: Answer) -> str | None:
        if answer.refusal:
            return None
        made = made_of(answer)
        if isinstance(made, str):
            return made
        kept.append(made)
        return None

    answer = ask(models, replace(question, check=check), bounds)
    if isinstance(answer, GaveUp):
        return f"{gave_up}: {answer.reason}"
    if answer.refusal:
        return f"{refused}: {plain(answer.refusal)}"
    return kept[-1]


def _line(error: Exception) -> str:
    cause = error.__cause__
    more = f" ({plain(str(cause))[:200]})" if cause is not None else ""
    return plain(readable(str(error)))[:300] + more


class BoundedModel(WrapperModel):
    """A model that is never sent more than it is said to take, and says when turns run out."""

    def __init__(self, wrapped: Model, bounds: Bounds, turns: int) -> None:
        super().__init__(wrapped)
        self.most = bounds.request
        self.turns = turns
        self.asked = 0

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask with as much as fits; with half of it when the endpoint says that it does not."""
        messages = self._reminded(messages)
        self.asked += 1
        for narrowing in range(NARROWINGS + 1):
            try:
                return await self.wrapped.request(
                    bounded(messages, self.most), model_settings, model_request_parameters
                )
            except CallFailed as failure:
                if failure.outcome is not CallOutcome.CONTEXT_OVERFLOW or narrowing == NARROWINGS:
                    raise
                self.most = min(self.most, size_of(bounded(messages, self.most))) // 2
        raise AssertionError("the last try has returned or raised")

    def _reminded(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        left = self.turns - self.asked
        last = messages[-1]
        if self.turns <= LAST_TURNS or left > LAST_TURNS or not isinstance(last, ModelRequest):
            return messages
        word = f"{left} turns are" if left > 1 else "This is your last turn: 1 turn is"
        note = UserPromptPart(f"({word} left; hand over what you have with `{FINISH}` in time.)")
        return [*messages[:-1], replace(last, parts=[*last.parts, note])]
