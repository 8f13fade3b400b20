"""The one loop: observe, plan, act, result, until an outcome ends the run.

It knows no database, queue or model: those are ports. Errors of a skill are data that the planner sees; what is not
SkillFailed or Escalation is a system error and leaves the loop. Every effect is recorded before it happens.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from pydantic_core import to_json

from app.agent.admission import Admitted, AnySkill, Refused, admit, offers
from app.agent.ports import PLANNING, CallSkill, Finish, Journal, Planner, StepError, StepResult
from app.agent.skill import CallLog, Escalation, SkillContext, SkillFailed
from app.agent.steps import (
    PLANNING_KEEPS_FAILING,
    Budget,
    Continue,
    DraftReady,
    Escalate,
    Fail,
    Outcome,
    after_failure,
    after_finish,
    after_result,
    within_budget,
)
from app.agent.values import Observation, ToolMessage


@dataclass(frozen=True, slots=True)
class Agent:
    """The parts that a run is driven by: the planners by name, and the skills."""

    planners: Mapping[str, Planner]
    skills: Sequence[AnySkill]


class SkillTimedOut(Exception):
    """A skill took longer than its limit, `limit_s` seconds: a system error, never text for the planner."""

    def __init__(self, skill: str, limit_s: float) -> None:
        super().__init__(skill)
        self.skill = skill
        self.limit_s = limit_s


@dataclass(frozen=True, slots=True)
class RunPorts:
    """What one run talks to. `skill_timeout_s` limits each skill, in seconds."""

    planner: Planner
    skills: Sequence[AnySkill]
    journal: Journal
    calls: CallLog
    show_draft: Callable[[str], Awaitable[None]]
    skill_timeout_s: float


@dataclass(frozen=True, slots=True)
class Start:
    """Where a run begins: what it knows, the last step number used, and the steps that it may take."""

    observation: Observation
    last_step: int
    budget: Budget


async def drive(start: Start, ports: RunPorts) -> DraftReady | Escalate | Fail:
    """Drive a run to its draft, to a person, or to the end of its steps.

    Raises RunLost when the run is no longer ours, ModelUnavailable, SkillTimedOut, and whatever else a port raises.
    """
    number, budget = start.last_step, start.budget
    outcome = within_budget(Continue(start.observation), budget)
    if isinstance(outcome, Fail):
        await ports.journal.ended(outcome, ports.calls)
    while isinstance(outcome, Continue):
        observation = outcome.observation
        match await _plan(observation, ports):
            case Admitted() | Refused() as call:
                number, budget = number + 1, budget.less_one()
                outcome = await _step(number, budget, call, observation, ports)
            case Finish():
                outcome = after_finish(observation)
                await ports.journal.ended(outcome, ports.calls)
            case _ as never:
                assert_never(never)
    return outcome


async def _plan(observation: Observation, ports: RunPorts) -> Admitted | Refused | Finish:
    """Return the planner's next move, checked. A planner that fails has made a step that failed."""
    try:
        plan = await ports.planner.plan(observation, offers(ports.skills, observation), ports.calls)
    except SkillFailed as failure:
        return Refused(PLANNING, failure.code, failure.message)
    return admit(plan, ports.skills, observation) if isinstance(plan, CallSkill) else plan


async def _step(
    number: int, budget: Budget, call: Admitted | Refused, observation: Observation, ports: RunPorts
) -> Outcome:
    """Take one step: record its start, run the skill, record its end. `budget` is what is left after it."""
    await ports.journal.step_started(number, call.name, call.arguments, ports.calls)
    outcome: Outcome
    try:
        result, learnt = await _act(call, observation, ports)
    except SkillFailed as failure:
        error = StepError(failure.code, failure.message)
        failed = _with_error(observation, call, error)
        outcome = within_budget(after_failure(failed, _keeps_failing(call.name, ports.skills)), budget)
    except Escalation as escalation:
        error = StepError("escalated", escalation.reason)
        outcome = Escalate(_with_error(observation, call, error), escalation.reason)
    else:
        outcome = within_budget(after_result(_with_turn(learnt, call, result.facts)), budget)
        await ports.journal.step_finished(number, result, outcome, ports.calls)
        return outcome
    await ports.journal.step_failed(number, error, outcome, ports.calls)
    return outcome


async def _act(call: Admitted | Refused, observation: Observation, ports: RunPorts) -> tuple[StepResult, Observation]:
    if isinstance(call, Refused):
        raise SkillFailed(call.code, call.message)
    skill = call.skill
    try:
        async with asyncio.timeout(ports.skill_timeout_s) as limit:
            value = await skill.run(call.params, SkillContext(observation, ports.calls, ports.show_draft))
    except TimeoutError:
        # A skill may raise a TimeoutError of its own, and the run's limit ends it too: neither is this limit's doing.
        if not limit.expired():
            raise
        raise SkillTimedOut(skill.name, ports.skill_timeout_s) from None
    facts = to_json(skill.summarize(value)).decode()
    return StepResult(skill.name, value, facts), skill.absorb(observation, value)


def _keeps_failing(name: str, skills: Sequence[AnySkill]) -> str:
    return next((skill.keeps_failing for skill in skills if skill.name == name), PLANNING_KEEPS_FAILING)


def _with_error(observation: Observation, call: Admitted | Refused, error: StepError) -> Observation:
    words = to_json({"error": error.code, "message": error.message}).decode()
    return _with_turn(observation, call, words, error.code)


def _with_turn(learnt: Observation, call: Admitted | Refused, summary: str, error: str | None = None) -> Observation:
    turn = ToolMessage(
        skill=call.name, arguments=call.arguments, summary=summary, failed=error is not None, error=error
    )
    return learnt.model_copy(update={"turns": (*learnt.turns, turn)})
