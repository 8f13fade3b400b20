"""The loop, on hand-written ports: what it records, what it lets through, and how it ends."""

import asyncio
from collections.abc import Sequence

import pytest

from app.agent.admission import AnySkill
from app.agent.loop import RunPorts, SkillTimedOut, Start, drive
from app.agent.ports import CallSkill, Planner
from app.agent.rule_planner import RulePlanner
from app.agent.skill import CallLog, Level, Phase, SkillFailed
from app.agent.steps import (
    GAVE_UP,
    NOT_COVERED,
    OUT_OF_STEPS,
    PLANNING_KEEPS_FAILING,
    Budget,
    DraftReady,
    Escalate,
    Fail,
    loop_of,
)
from app.agent.values import Classification, Observation, SearchResult, Sufficiency
from app.skills import make_skills
from app.skills.classify_ticket import ClassifyTicket
from app.skills.search_knowledge import SearchKnowledge
from tests.agent.parts import (
    FixedClassifier,
    FixedDrafter,
    FixedRetriever,
    KeptJournal,
    ScriptedPlanner,
    call,
    found,
    ticket,
)

CLASSIFY, SEARCH, DRAFT = call("classify_ticket"), call("search_knowledge"), call("draft_reply")
CUT_OFF = SkillFailed("model_output_cut", "The answer was cut off.")
INSUFFICIENT = Sufficiency.INSUFFICIENT


class Run:
    """One run of the loop and what came of it."""

    def __init__(
        self,
        planner: Planner,
        *,
        skills: Sequence[AnySkill] | None = None,
        retriever: FixedRetriever | None = None,
        drafter: FixedDrafter | None = None,
        classifier: FixedClassifier | None = None,
        steps: int = 5,
        start: Observation | None = None,
        skill_timeout_s: float = 5.0,
    ) -> None:
        self.retriever = retriever or FixedRetriever()
        self.drafter = drafter or FixedDrafter()
        self.journal = KeptJournal()
        self.shown: list[str] = []
        made = make_skills(classifier or FixedClassifier(), self.retriever, self.drafter)
        begin = Start(start or Observation(ticket=ticket()), 0, Budget(steps, steps))
        ports = RunPorts(planner, skills or made, self.journal, CallLog(), self._show, skill_timeout_s)
        self.outcome = asyncio.run(drive(begin, ports))

    async def _show(self, text: str) -> None:
        self.shown.append(text)

    @property
    def reason(self) -> str:
        assert isinstance(self.outcome, Escalate)
        return self.outcome.reason


@pytest.mark.parametrize("planner", [RulePlanner(), ScriptedPlanner([CLASSIFY, SEARCH, DRAFT])])
def test_both_planners_reach_a_draft_in_three_recorded_steps(planner: Planner) -> None:
    run = Run(planner)
    assert isinstance(run.outcome, DraftReady)
    assert [line[:3] for line in run.journal.lines] == [
        ("started", 1, "classify_ticket"),
        ("finished", 1, "classify_ticket"),
        ("started", 2, "search_knowledge"),
        ("finished", 2, "search_knowledge"),
        ("started", 3, "draft_reply"),
        ("finished", 3, "draft_reply"),
    ]
    assert run.shown[-1] == run.drafter.text


def test_each_turn_offers_the_skills_of_the_open_phase_only() -> None:
    planner = ScriptedPlanner([CLASSIFY, SEARCH, DRAFT])
    Run(planner)
    assert planner.offered == [("classify_ticket",), ("search_knowledge",), ("draft_reply",)]


def test_the_planner_is_shown_summaries_and_never_knowledge_text() -> None:
    run = Run(ScriptedPlanner([CLASSIFY, SEARCH, DRAFT]))
    turns = run.outcome.observation.turns
    assert '"found":1' in turns[1].summary
    assert '"outcome":"sufficient"' in turns[1].summary
    passage = found().passages[0].text
    assert all(passage not in turn.summary + turn.arguments for turn in turns)


@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        (call("delete_everything"), "unknown_skill"),
        (DRAFT, "wrong_phase"),
        (call("classify_ticket", "{not json"), "bad_arguments"),
        (call("classify_ticket", '{"ticket_content": 7}'), "bad_arguments"),
        (call("classify_ticket", '{"ticket_content": "' + "a" * 30_000 + '"}'), "bad_arguments"),
        (call("classify_ticket", "[" * 5_000), "bad_arguments"),
        (call("classify_ticket", '{"ticket_content": 1e400}'), "bad_arguments"),
        (call("classify_ticket", '{"more": [-1e400]}'), "bad_arguments"),
        (call("classify_ticket", '{"a\\u0000b": 1}'), "bad_arguments"),
        (call("no\0such\ud800skill"), "unknown_skill"),
        (call("classify_ticket", '{"nested": [{"api_key": "sk-1"}]}'), "forbidden_parameter"),
    ],
)
def test_a_refused_call_is_data_for_the_planner_and_the_run_goes_on(wrong: object, code: str) -> None:
    run = Run(ScriptedPlanner([wrong, CLASSIFY, SEARCH, DRAFT]))
    assert ("failed", 1, code, "Continue") in run.journal.lines
    assert isinstance(run.outcome, DraftReady)
    turn = run.outcome.observation.turns[0]
    assert turn.failed
    assert not [char for char in turn.skill + turn.arguments + turn.summary if not char.isprintable()]
    assert "Infinity" not in turn.arguments


@pytest.mark.parametrize(
    "arguments",
    [
        '{"query": "退款 sk-HUNTERXYZ"}',
        '{"ticket_content": "Bearer HUNTERXYZ.abc"}',
        '{"ticket_content": ["密码：HUNTERXYZ"]}',
        '{"ticket_content": {"x": "aHUNTERXYZ0123456789012345"}}',
        '{"sk-HUNTERXYZ": 1}',
    ],
)
def test_a_secret_among_the_arguments_is_kept_nowhere(arguments: str) -> None:
    run = Run(ScriptedPlanner([call("classify_ticket", arguments), CLASSIFY, SEARCH, DRAFT]))
    turns = run.outcome.observation.turns
    assert "HUNTERXYZ" not in str(run.journal.lines) + run.outcome.observation.model_dump_json()
    assert "***" in turns[0].arguments


@pytest.mark.parametrize(
    "name", ["password", "Passwd", "access_token", "API-Key", "client_secret", "set_cookie", "Authorization"]
)
def test_a_credential_is_refused_and_kept_nowhere(name: str) -> None:
    run = Run(ScriptedPlanner([call("classify_ticket", f'{{"{name}": "hunter2"}}'), CLASSIFY, SEARCH, DRAFT]))
    assert ("failed", 1, "forbidden_parameter", "Continue") in run.journal.lines
    assert "hunter2" not in str(run.journal.lines)
    assert "hunter2" not in run.outcome.observation.model_dump_json()


@pytest.mark.parametrize("level", [Level.SEND, Level.IRREVERSIBLE])
def test_an_agent_never_runs_a_skill_that_sends(level: Level) -> None:
    class SendReply(ClassifyTicket):
        name = "send_reply"
        phase = Phase.CLASSIFY

        async def run(self, params: object, context: object) -> Classification:
            raise AssertionError("it was run")

    SendReply.level = level
    skills = (*make_skills(FixedClassifier(), FixedRetriever(), FixedDrafter()), SendReply(FixedClassifier()))
    planner = ScriptedPlanner([call("send_reply"), CLASSIFY, SEARCH, DRAFT])
    run = Run(planner, skills=skills)
    assert "send_reply" not in planner.offered[0]
    assert ("failed", 1, "forbidden_level", "Continue") in run.journal.lines


def test_the_third_answer_in_a_row_that_cannot_be_used_goes_to_a_person_and_names_the_skill() -> None:
    run = Run(RulePlanner(), classifier=FixedClassifier(failures=3))
    assert run.reason == ClassifyTicket.keeps_failing
    assert run.journal.lines[-1] == ("failed", 3, "bad_output", "Escalate")


def test_arguments_that_cannot_be_used_count_as_the_answers_do() -> None:
    bad = call("search_knowledge", '{"query": 7}')
    run = Run(ScriptedPlanner([CLASSIFY, bad, bad, bad]))
    assert run.reason == SearchKnowledge.keeps_failing


def test_what_another_skill_does_in_between_does_not_break_the_row() -> None:
    bad = call("search_knowledge", '{"query": 7}')
    run = Run(ScriptedPlanner([CLASSIFY, bad, DRAFT, bad, DRAFT, bad]), steps=9)
    assert run.reason == SearchKnowledge.keeps_failing


def test_a_success_breaks_the_row() -> None:
    bad = call("search_knowledge", '{"query": 7}')
    run = Run(
        ScriptedPlanner([CLASSIFY, bad, bad, SEARCH, bad, SEARCH, DRAFT]),
        steps=9,
        retriever=FixedRetriever([INSUFFICIENT, Sufficiency.SUFFICIENT]),
    )
    assert isinstance(run.outcome, DraftReady)


@pytest.mark.parametrize(
    "wrong", [call("no_such_skill"), DRAFT, call("classify_ticket", '{"password": "hunter2"}')], ids=lambda c: c.name
)
def test_a_wrong_turn_never_goes_to_a_person_and_the_limit_names_the_loop(wrong: CallSkill) -> None:
    run = Run(ScriptedPlanner([wrong] * 5))
    assert isinstance(run.outcome, Fail)
    assert (run.outcome.code, run.outcome.message) == ("step_limit", OUT_OF_STEPS)
    assert run.outcome.detail == {"steps": 5, "loop": f"{wrong.name} → …"}
    assert run.journal.lines[-1][:2] == ("failed", 5)
    assert run.journal.lines[-1][3] == "Fail"


@pytest.mark.parametrize(
    ("steps", "loop"),
    [
        ("a", "a"),
        ("abc", "a → b → c"),
        ("aaa", "a → …"),
        ("abcc", "c → …"),
        ("xabab", "a → b → …"),
        ("xyabcabc", "a → b → c → …"),
        ("", ""),
    ],
)
def test_a_loop_is_named_by_its_shortest_round(steps: str, loop: str) -> None:
    assert loop_of(list(steps)) == loop


def test_two_failures_in_a_row_do_not() -> None:
    run = Run(RulePlanner(), classifier=FixedClassifier(failures=2))
    assert isinstance(run.outcome, DraftReady)


def test_a_planner_that_fails_has_made_a_step_that_failed_and_may_try_again() -> None:
    run = Run(ScriptedPlanner([CUT_OFF, CLASSIFY, SEARCH, DRAFT]))
    assert run.journal.lines[:2] == [("started", 1, "plan", "{}"), ("failed", 1, "model_output_cut", "Continue")]
    assert isinstance(run.outcome, DraftReady)


def test_a_planner_that_keeps_failing_goes_to_a_person() -> None:
    run = Run(ScriptedPlanner([CUT_OFF] * 3))
    assert run.reason == PLANNING_KEEPS_FAILING
    assert run.journal.lines[-1] == ("failed", 3, "model_output_cut", "Escalate")


def test_an_insufficient_search_is_tried_once_more_in_other_words_and_then_goes_to_a_person() -> None:
    planner = ScriptedPlanner([CLASSIFY, SEARCH, SEARCH, SEARCH])
    run = Run(planner, retriever=FixedRetriever([INSUFFICIENT]))
    assert run.reason == NOT_COVERED
    first, second = run.retriever.queries
    assert "上周申请" in first
    assert second == "退款多久到账"
    assert run.journal.lines[-1] == ("finished", 3, "search_knowledge", "Escalate")
    assert run.shown == []


def test_a_rewritten_query_that_finds_enough_leads_to_a_draft() -> None:
    retriever = FixedRetriever([INSUFFICIENT, Sufficiency.WEAK])
    run = Run(
        ScriptedPlanner([CLASSIFY, SEARCH, call("search_knowledge", '{"query": "退款时效"}'), DRAFT]),
        retriever=retriever,
    )
    assert isinstance(run.outcome, DraftReady)
    assert retriever.queries[1] == "退款时效"


def test_the_rule_planner_escalates_what_the_base_does_not_cover() -> None:
    run = Run(RulePlanner(), retriever=FixedRetriever([INSUFFICIENT]))
    assert run.reason == NOT_COVERED


def test_a_drafter_that_finds_no_answer_in_the_sources_overrules_the_verdict() -> None:
    run = Run(RulePlanner(), drafter=FixedDrafter(refuses=True))
    assert run.reason == "The sources do not answer this."
    assert run.journal.lines[-1] == ("failed", 3, "escalated", "Escalate")


def test_a_planner_that_stops_early_leaves_the_ticket_to_a_person() -> None:
    run = Run(ScriptedPlanner([CLASSIFY]))
    assert run.reason == GAVE_UP
    assert run.journal.lines[-1] == ("ended", "Escalate")


def test_the_last_step_without_a_draft_fails_the_run_in_its_own_write() -> None:
    run = Run(ScriptedPlanner([DRAFT, CLASSIFY, SEARCH]), steps=3)
    assert isinstance(run.outcome, Fail)
    assert run.outcome.detail == {"steps": 3, "loop": "draft_reply → classify_ticket → search_knowledge"}
    assert run.journal.lines[-1] == ("finished", 3, "search_knowledge", "Fail")


def test_a_run_without_a_step_left_takes_none() -> None:
    run = Run(RulePlanner(), steps=0)
    assert run.journal.lines == [("ended", "Fail")]


def test_the_turns_of_an_earlier_run_are_no_part_of_the_loop() -> None:
    known = Run(RulePlanner()).outcome.observation.model_copy(update={"draft": None})
    run = Run(ScriptedPlanner([SEARCH] * 2), start=known, steps=2)
    assert isinstance(run.outcome, Fail)
    assert run.outcome.detail["loop"] == "search_knowledge → …"


def test_a_resumed_run_goes_on_where_it_stood() -> None:
    known = Run(RulePlanner()).outcome.observation.model_copy(update={"draft": None})
    run = Run(RulePlanner(), start=known)
    assert [line[2] for line in run.journal.lines if line[0] == "started"] == ["draft_reply"]


def test_every_paid_call_reaches_the_journal() -> None:
    run = Run(ScriptedPlanner([CLASSIFY, SEARCH, DRAFT]))
    assert run.journal.paid == 4


def test_a_skill_that_hangs_is_cut_off_by_its_name() -> None:
    hanging = FixedDrafter(gate=asyncio.Event())
    with pytest.raises(SkillTimedOut) as raised:
        Run(RulePlanner(), drafter=hanging, skill_timeout_s=0.05)
    assert (raised.value.skill, raised.value.limit_s) == ("draft_reply", 0.05)


class TimesOutItself(FixedRetriever):
    """A retriever whose own socket times out."""

    async def search(self, query: str) -> SearchResult:
        raise TimeoutError


def test_a_time_out_of_the_skills_own_is_not_taken_for_its_limit() -> None:
    with pytest.raises(TimeoutError):
        Run(RulePlanner(), retriever=TimesOutItself())
