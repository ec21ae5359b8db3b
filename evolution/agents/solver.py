"""The solver with a model: a terminal agent whose attempt ends in a normal trial."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from evolution import execution
from evolution.agents.asking import WRONG_ANSWERS, WRONG_CALLS, BoundedModel, Models
from evolution.agents.trajectory import Observed, Story, atif, cast
from evolution.agents.trimming import Bounds, quoted
from evolution.agents.workbench import Bench
from evolution.bundle import Bundle
from evolution.llm.calls import CallFailed, CallLog, Role
from evolution.prompts import prompt
from sandbox.base import AttemptRunner, Sandbox
from sandbox.contracts import ExecResult, SolverSpec, TrialResult

PROMPT = prompt("solver")
AGENT, VERSION = "ratchet-terminal", "1"


class Ended(StrEnum):
    """How an attempt ended: by itself, or by which limit."""

    DONE = "done"
    TURNS = "turns"
    TOKENS = "tokens"
    TIMEOUT = "timeout"
    OUT_OF_FORM = "out_of_form"
    NO_ANSWER = "no_answer"


@dataclass(frozen=True, slots=True)
class SolverLimits:
    """What one attempt may take: requests, tokens, and seconds (never more than the bundle's).

    Seconds are those that commands took; with a `clock`, those that passed on it.
    """

    turns: int = 60
    tokens: int | None = None
    seconds: float = 900.0
    command_seconds: float = 120.0


@dataclass(frozen=True, slots=True)
class Attempted:
    """One attempt: the trial's result as for any solver, and what was done in it."""

    result: TrialResult
    ended: Ended
    turns: int
    commands: int
    input_tokens: int
    output_tokens: int
    trajectory: dict[str, object]
    cast: bytes


@dataclass
class Solver:
    """Attempts environments with the model that plays the role `solver`.

    `log` keeps what commands gave, so that a repeated attempt asks the model the same things.
    """

    models: Models
    runner: AttemptRunner
    log: CallLog | None = None
    bounds: Bounds = field(default_factory=Bounds)
    limits: SolverLimits = field(default_factory=SolverLimits)
    clock: Callable[[], float] | None = None

    def attempt(self, bundle: Bundle, place: str) -> Attempted:
        """One attempt at an environment. The tests judge, also after a limit has struck.

        `place` names it ("solve/<digest>/<attempt>"). Raises BundleError when the bundle cannot be
        run; `BudgetStop` and `ModelUnavailable` pass through, and no trial counts then.
        """
        quiet = execution.nop(bundle)
        seconds = min(self.limits.seconds, self._own_seconds(bundle))
        spec = execution.trial_spec(
            bundle, replace(quiet, name=Role.SOLVER.value, timeout_seconds=seconds)
        )
        work = _Work(self, spec.solver, bundle.displayed_instruction, place)
        result = self.runner.attempt(spec, work)
        story = work.story
        return Attempted(
            result=result,
            ended=work.ended,
            turns=len(story.responses),
            commands=len(story.observed),
            input_tokens=story.input_tokens,
            output_tokens=story.output_tokens,
            trajectory=atif(story, agent=AGENT, version=VERSION, model=work.model_name),
            cast=cast(story),
        )

    def _own_seconds(self, bundle: Bundle) -> float:
        return execution.task_config(bundle).agent_timeout_seconds or self.limits.seconds


class _Work:
    """The agent at work in the trial's own sandbox."""

    def __init__(self, solver: Solver, spec: SolverSpec, task: str, place: str) -> None:
        self.solver, self.spec, self.place = solver, spec, place
        self.story = Story(task)
        self.ended = Ended.DONE
        self.model_name = ""
        self.spent = 0.0

    def __call__(self, sandbox: Sandbox) -> ExecResult:
        """See `sandbox.base.Work`."""
        solver = self.solver
        bench = Bench(
            start=lambda: sandbox,
            role=Role.SOLVER,
            place=f"{self.place}/tools",
            bounds=solver.bounds,
            log=solver.log,
            user=self.spec.user,
        )
        begun = solver.clock() if solver.clock is not None else 0.0
        model = _Listening(
            solver.models.model_for(Role.SOLVER), solver.bounds, solver.limits.turns, self.story
        )
        self.model_name = model.model_name
        tool = Tool(self._tool(bench, begun), name="run", takes_ctx=True, sequential=True)
        agent = Agent(
            model,
            instructions=PROMPT.text,
            tools=[tool],
            retries={"tools": WRONG_CALLS, "output": WRONG_ANSWERS},
            defer_model_check=True,
        )
        limits = UsageLimits(
            request_limit=solver.limits.turns, total_tokens_limit=solver.limits.tokens
        )
        text = quoted("the task", self.story.task, solver.bounds.brief)
        try:
            with solver.models.at(self.place, prompt_digest=PROMPT.digest):
                solver.models.run(agent, f"Do this task:\n\n{text}", usage_limits=limits)
        except UsageLimitExceeded:
            has_turns = len(self.story.responses) < solver.limits.turns
            self.ended = Ended.TOKENS if has_turns else Ended.TURNS
        except UnexpectedModelBehavior:
            self.ended = Ended.OUT_OF_FORM
        except CallFailed:
            self.ended = Ended.NO_ANSWER
        except _TimeIsUp:
            self.ended = Ended.TIMEOUT
        bench.catch_up()
        return self._result()

    def _tool(self, bench: Bench, begun: float) -> Callable[..., object]:
        limits, clock = self.solver.limits, self.solver.clock

        async def run(ctx: RunContext[None], command: str, timeout_seconds: int = 60) -> str:
            """Run one shell command (bash).

            Args:
                command: The command. Each call is a new shell; files stay.
                timeout_seconds: After so many seconds it is ended, with all it started.
            """
            passed = clock() - begun if clock is not None else self.spent
            left = self.spec.timeout_seconds - passed
            if left <= 0:
                raise _TimeIsUp
            ran = bench.run(command, timeout_seconds, min(limits.command_seconds, left))
            self.spent += ran.seconds
            self.story.observed.append(
                Observed(ctx.tool_call_id or "", command, ran.text, ran.seconds)
            )
            if ran.timed_out and ran.seconds >= left:
                raise _TimeIsUp
            return ran.text

        return run

    def _result(self) -> ExecResult:
        """How the phase ended, as a command that ends in that way."""
        observed = self.story.observed
        return ExecResult(
            exit_status=0,
            stdout=observed[-1].text.encode("utf-8", "replace") if observed else b"",
            stderr=b"",
            truncated=False,
            timed_out=self.ended is Ended.TIMEOUT,
            seconds=self.spent,
        )


class _TimeIsUp(Exception):
    """The attempt's seconds are used up."""


class _Listening(BoundedModel):
    """Notes every answer for the story; a solver is not hurried to hand anything over."""

    def __init__(self, wrapped: Model, bounds: Bounds, turns: int, story: Story) -> None:
        super().__init__(wrapped, bounds, turns)
        self.story = story

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Ask, and note the answer."""
        response = await super().request(messages, model_settings, model_request_parameters)
        self.story.responses.append(response)
        return response

    def _reminded(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        return messages
