"""The closed set of outcomes that a step can have, and the rules that choose one. Pure."""

from dataclasses import dataclass

from app.agent.values import Observation, Sufficiency
from app.msgids import msgid

MAX_SEARCHES = 2
"""The first query, and one that was rewritten."""
FAILURES_TO_A_PERSON = 3
"""So many failed steps in a row go to a person."""

# Why a run goes to a person.
NOT_COVERED = msgid("The knowledge base does not answer this ticket.")
KEEPS_FAILING = msgid("The agent failed three times in a row.")
OUT_OF_STEPS = msgid("The agent used up its steps without a draft.")
GAVE_UP = msgid("The agent stopped without a draft.")


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


Outcome = Continue | DraftReady | Escalate


def after_result(observation: Observation) -> Outcome:
    """Return what follows from a step that succeeded."""
    if observation.draft is not None:
        return DraftReady(observation)
    if not is_answerable(observation) and observation.searches >= MAX_SEARCHES:
        return Escalate(observation, NOT_COVERED)
    return Continue(observation)


def after_failure(observation: Observation) -> Outcome:
    """Return what follows from a step that failed; the failure is the last turn of `observation`."""
    last = observation.turns[-FAILURES_TO_A_PERSON:]
    if len(last) == FAILURES_TO_A_PERSON and all(turn.failed for turn in last):
        return Escalate(observation, KEEPS_FAILING)
    return Continue(observation)


def after_finish(observation: Observation) -> Escalate:
    """Return what follows when the planner sees nothing more to do: there is no draft, so a person takes over."""
    searched_in_vain = observation.search is not None and not is_answerable(observation)
    return Escalate(observation, NOT_COVERED if searched_in_vain else GAVE_UP)


def within_budget(outcome: Outcome, steps_left: int) -> Outcome:
    """Return the outcome, or an escalation when the run would go on without a step left."""
    if isinstance(outcome, Continue) and steps_left <= 0:
        return Escalate(outcome.observation, OUT_OF_STEPS)
    return outcome


def is_answerable(observation: Observation) -> bool:
    """Return whether the last search found enough to draft from, if only with a warning."""
    search = observation.search
    return search is not None and search.verdict.outcome is not Sufficiency.INSUFFICIENT
