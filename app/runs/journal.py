"""Records one run: the agent's Journal port over the ledger. Knows what each kind of step end means for the rows."""

from collections.abc import Mapping
from typing import assert_never

from pydantic import BaseModel
from pydantic_core import from_json

from app.agent.ports import StepError, StepResult
from app.agent.skill import CallLog
from app.agent.steps import Continue, DraftReady, Escalate, Fail, Outcome
from app.agent.values import CHECKPOINT_SCHEMA, Classification, Draft, SearchResult
from app.ids import new_id
from app.live.draft_stream import DraftStream
from app.runs.ledger import Claimed, Failure, Happened, Ledger, Move, PaidCalls, Params, json_text
from app.runs.models import ArtifactType, EventType, RunStatus

_ARTIFACT_OF: dict[type[BaseModel], ArtifactType] = {
    Classification: ArtifactType.CLASSIFICATION,
    SearchResult: ArtifactType.SEARCH_RESULT,
    Draft: ArtifactType.DRAFT,
}


class RunJournal:
    """The journal of one claimed run. Each method is one statement; see the port for what it promises."""

    def __init__(self, ledger: Ledger, claimed: Claimed) -> None:
        self._ledger = ledger
        self._claimed = claimed
        self._draft = DraftStream(ledger.publisher, claimed.thread_id, claimed.run_id)
        self._paid = PaidCalls()
        self._step = claimed.row["cur_step"]
        self._first_facts: Mapping[str, object] = {}

    def begin(self, facts: Mapping[str, object]) -> None:
        """Let the event of the next step tell `facts` too: where from the run goes on."""
        self._first_facts = facts

    async def show_draft(self, text: str) -> None:
        """Show the draft as far as it is written."""
        await self._draft.show(text)

    async def step_started(self, number: int, skill: str, arguments: str, calls: CallLog) -> None:
        """Record that a step begins."""
        self._step = number
        self._note(calls)
        event = Happened(EventType.STEP_STARTED, {"step": number, "skill": skill, **self._first_facts})
        self._first_facts = {}
        params: Params = {"step": number, "skill": skill, "input": json_text(_as_object(arguments))}
        await self._ledger.start_step(self._claimed, params, event, self._paid)

    async def step_finished(self, number: int, result: StepResult, outcome: Outcome, calls: CallLog) -> None:
        """Record a result: step, checkpoint, artifact, the ticket's class, and where the run goes."""
        self._draft.close()
        self._note(calls)
        kind = _ARTIFACT_OF.get(type(result.value))
        artifact = new_id() if kind else None
        value = result.value
        classified = value if isinstance(value, Classification) else None
        params = {
            **self._end_params(number, outcome),
            "output": json_text(value.model_dump_json()),
            "summary": json_text(result.facts),
            "artifact": artifact,
            "artifact_type": kind,
            "priority": classified and classified.priority,
            "category": classified and classified.category,
            "confidence": classified and classified.confidence,
        }
        payload = {"step": number, "skill": result.skill, "facts": from_json(result.facts)}
        events = [Happened(EventType.STEP_COMPLETED, payload)]
        await self._ledger.end_step(self._claimed, _move(outcome, str(artifact)), params, events, self._paid)

    async def step_failed(self, number: int, error: StepError, outcome: Outcome, calls: CallLog) -> None:
        """Record a failure and where the run goes."""
        self._draft.close()
        self._note(calls)
        params = {
            **self._end_params(number, outcome),
            "error_code": error.code,
            "error_message": error.message.replace("\0", ""),
        }
        payload = {"step": number, "skill": outcome.observation.turns[-1].skill, "error": error.code}
        events = [Happened(EventType.STEP_FAILED, payload)]
        await self._ledger.end_step(self._claimed, _move(outcome), params, events, self._paid)

    async def ended(self, outcome: Outcome, calls: CallLog) -> None:
        """Record an outcome that came between two steps."""
        self._note(calls)
        await self._ledger.end_run(self._claimed, _move(outcome), self._paid)

    async def failed(self, failure: Failure, calls: CallLog) -> None:
        """Record that the run failed. Raises RunLost."""
        self._draft.close()
        self._note(calls)
        await self._ledger.end_run(self._claimed, _failed(failure), self._paid)

    async def handed_back(self, calls: CallLog) -> None:
        """Record that this process stops and another is to go on with the run. Raises RunLost."""
        self._note(calls)
        events = [Happened(EventType.RUN_RETRYING, {"reason": "worker_stopped"})]
        await self._ledger.end_run(self._claimed, Move(RunStatus.RETRYING, events), self._paid)

    async def close(self, calls: CallLog) -> None:
        """Put calls on record that no transition took along: those of a step that was cut off."""
        self._note(calls)
        await self._ledger.save_calls(self._claimed, self._paid)

    def _note(self, calls: CallLog) -> None:
        self._paid.add(self._step, calls.take())

    @staticmethod
    def _end_params(number: int, outcome: Outcome) -> Params:
        """Return what every end of a step has; a result or an error fills in its own."""
        return {
            "step": number,
            "schema_version": CHECKPOINT_SCHEMA,
            "observation": json_text(outcome.observation.model_dump_json()),
            **dict.fromkeys(("output", "summary", "artifact", "artifact_type", "priority", "category", "confidence")),
            **dict.fromkeys(("error_code", "error_message")),
        }


def _move(outcome: Outcome, draft_id: str | None = None) -> Move:
    """Return where an outcome moves the run, and the events that say so."""
    match outcome:
        case Continue():
            return Move(RunStatus.RUNNING)
        case DraftReady():
            made = {"artifact_id": draft_id}
            events = [Happened(EventType.DRAFT_READY, made), Happened(EventType.REVIEW_REQUESTED, made)]
            return Move(RunStatus.WAITING_FOR_REVIEW, events)
        case Escalate():
            event = Happened(EventType.RUN_ESCALATED, {"reason": outcome.reason})
            return Move(RunStatus.WAITING_FOR_ESCALATION, [event], reason=outcome.reason)
        case Fail():
            return _failed(Failure(outcome.code, outcome.message, outcome.detail))
        case _ as never:
            assert_never(never)


def _failed(failure: Failure) -> Move:
    return Move(RunStatus.FAILED, [failure.event], failure=failure)


def _as_object(arguments: str) -> str:
    """Return arguments as the JSON object that a step's input is; a model may have sent a bare value."""
    return arguments if arguments.startswith("{") else f'{{"arguments": {arguments}}}'
