"""The closed set of outcomes that a step can have, and the rules that choose one. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.agent.values import Observation, Sufficiency, ToolMessage
from app.msgids import msgid

MAX_SEARCHES = 2
"""The first query, and one that was rewritten."""
FAILURES_TO_A_PERSON = 3
"""So often in a row may a skill be called or answered in a form that can't be used; then a person takes over."""
WRONG_TURNS = frozenset({"unknown_skill", "wrong_phase", "forbidden_level", "forbidden_parameter"})
"""Errors of choice, not of form: the planner is told and may correct itself for as long as the run has steps."""
STEP_LIMIT = "step_limit"

# Why a run goes to a person.
NOT_COVERED = msgid("The knowledge base does not answer this ticket.")
GAVE_UP = msgid("The agent stopped without a draft.")
PLANNING_KEEPS_FAILING = msgid("Planning failed three times in a row: what the model wrote could not be used.")

# Why a run fails.
OUT_OF_STEPS = msgid("The agent used up its %(steps)s steps without a draft: %(loop)s")


@dataclass(frozen=True, slots=True)
class Continue:
    """The run goes on with what it knows now."""

    observation: Observation


@dataclass(frozen=True, slots=True)
class DraftReady:
    """The run has its draft and waits for a reviewer."""

    observation: Observation


@dataclass(frozen=True, slots=True)
class Escalate:
    """The run goes to a person; `reason` is an English msgid for the page."""

    observation: Observation
    reason: str


@dataclass(frozen=True, slots=True)
class Fail:
    """The run fails; `message` is an English msgid for the page, whose places `detail` fills."""

    observation: Observation
    code: str
    message: str
    detail: Mapping[str, str | int]


Outcome = Continue | DraftReady | Escalate | Fail


@dataclass(frozen=True, slots=True)
class Budget:
    """The steps that a run may take, and those of them that are left."""

    max_steps: int
    left: int

    def less_one(self) -> "Budget":
        """Return what is left after one more step."""
        return replace(self, left=self.left - 1)


def after_result(observation: Observation) -> Outcome:
    """Return what follows from a step that succeeded."""
    if observation.draft is not None:
        return DraftReady(observation)
    if not is_answerable(observation) and observation.searches >= MAX_SEARCHES:
        return Escalate(observation, NOT_COVERED)
    return Continue(observation)


def after_failure(observation: Observation, keeps_failing: str) -> Outcome:
    """Return what follows from a step that failed; the failure is the last turn of `observation`.

    `keeps_failing` is the reason for a person when this skill's last turns were all of a form that can't be used;
    what other skills did in between does not count.
    """
    skill = observation.turns[-1].skill
    last = [turn for turn in observation.turns if turn.skill == skill][-FAILURES_TO_A_PERSON:]
    if len(last) == FAILURES_TO_A_PERSON and all(map(_is_unusable, last)):
        return Escalate(observation, keeps_failing)
    return Continue(observation)


def _is_unusable(turn: ToolMessage) -> bool:
    return turn.failed and turn.error not in WRONG_TURNS


def after_finish(observation: Observation) -> Escalate:
    """Return what follows when the planner sees nothing more to do: there is no draft, so a person takes over."""
    searched_in_vain = observation.search is not None and not is_answerable(observation)
    return Escalate(observation, NOT_COVERED if searched_in_vain else GAVE_UP)


def within_budget(outcome: Outcome, budget: Budget) -> Outcome:
    """Return the outcome, or a failure that names the loop when the run would go on without a step left."""
    if isinstance(outcome, Continue) and budget.left <= 0:
        taken = [turn.skill for turn in outcome.observation.turns[-budget.max_steps :]]
        detail: dict[str, str | int] = {"steps": budget.max_steps, "loop": loop_of(taken)}
        return Fail(outcome.observation, STEP_LIMIT, OUT_OF_STEPS, detail)
    return outcome


def loop_of(skills: Sequence[str]) -> str:
    """Return the shortest round that these steps ended in, followed by an ellipsis; all of them when there is none."""
    for length in range(1, len(skills) // 2 + 1):
        if skills[-length:] == skills[-2 * length : -length]:
            return " → ".join((*skills[-length:], "…"))
    return " → ".join(skills)


def is_answerable(observation: Observation) -> bool:
    """Return whether the last search found enough to draft from, if only with a warning."""
    search = observation.search
    return search is not None and search.verdict.outcome is not Sufficiency.INSUFFICIENT
