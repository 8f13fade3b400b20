"""Draws a schedule from a seed: a few tickets, what people do with them, and what goes wrong meanwhile."""

from random import Random

from tests.faults.script import Action, Agent, Point, Schedule, What

W = What
PEOPLE = {
    W.MESSAGE: 6,
    W.APPROVE: 6,
    W.CANCEL: 3,
    W.REGENERATE: 3,
    W.MANUAL: 2,
    W.ESCALATE: 2,
    W.STATUS: 3,
    W.CLASS: 3,
}
FAULTS = {
    W.KILL_WORKER: 6,
    W.KILL_WORKERS: 2,
    W.STOP_WORKER: 4,
    W.FREEZE_WORKER: 3,
    W.KILL_WEB: 2,
    W.KILL_SWEEPER: 1,
    W.FLUSH_VALKEY: 3,
    W.VALKEY_AWAY: 2,
    W.VALKEY_HANGS: 1,
}
PLACES = {
    "CLAIM": 2,
    "START_STEP": 4,
    "END_STEP": 5,
    "END_RUN": 2,
    "skill:classify_ticket": 2,
    "skill:search_knowledge": 2,
    "skill:draft_reply": 3,
    "channel": 2,
}
MORE_FAULTS = {"STATEMENT": ["lose_answer", "hang"], "skill": ["hang"], "channel": ["refuse", "break"]}
"""What may happen at a place beside a death or a freeze."""
MODELS = (
    "stub",
    "stub;chunks=20;chunk_delay=.01",
    "stub;delay=2",
    "stub;chunks=40;cut=9",
    "stub;status=429;times=2;retry_after=0",
    "stub;status=500;times=3",
    "stub;bad=1",
    "stub;html=1",
)
"""How the model server behaves where the agent asks one; its knobs, see `tests.support.stub_llm`."""
MODEL_SHARE = 0.15
SPAN_S = 0.7
"""Everything begins within this time."""
HAND_BACK_ONE_IN = 25
POSTGRES_ONE_IN = 100
"""A restart of PostgreSQL takes a second and hits every arena, so it is rare."""


def draw(seed: int) -> Schedule:
    """Return the schedule of a seed."""
    dice = Random(seed)  # noqa: S311 - no secret: the same seed must give the same schedule
    tickets = dice.randint(1, 3)
    actions = [_arrival(dice, number) for number in range(tickets)]
    actions += [_of_a_person(dice, seed, number, tickets) for number in range(dice.randint(2, 7))]
    actions += [_fault(dice) for _ in range(dice.randint(0, 3))]
    if dice.randrange(POSTGRES_ONE_IN) == 0:
        what = dice.choice([W.RESTART_POSTGRES, W.CRASH_POSTGRES])
        actions.append(Action(what=what, at=dice.uniform(0.1, SPAN_S)))
    schedule = Schedule(
        seed=seed,
        actions=tuple(sorted(actions, key=lambda action: action.at)),
        webs=dice.choice([1, 1, 2]),
        worker_points=tuple(_worker_points(dice) for _ in range(dice.randint(0, 4))),
        web_points=tuple(_web_points(dice) for _ in range(dice.choice([0, 0, 1, 2]))),
        agent=_agent(dice, seed),
        stale_runs=dice.choice(["mark_failed", "retry"]),
        run_timeout_ms=dice.choice([5_000, 5_000, 5_000, 300]),
        channel_repeats=dice.randrange(8) > 0,
    )
    return _with_a_late_hand_back(schedule, ticket=tickets) if dice.randrange(HAND_BACK_ONE_IN) == 0 else schedule


def _with_a_late_hand_back(schedule: Schedule, *, ticket: int) -> Schedule:
    """Add a ticket that people leave alone: its worker stops, freezes when it has handed the run back, and says so
    again while another one has it."""
    hand_back = Point(place="END_RUN", side="after", fault="freeze")
    points = (hand_back, hand_back.model_copy(update={"fault": "lose_answer"}))
    stop = Action(what=W.STOP_WORKER, when="steps:1", ticket=ticket)
    wake = Action(what=W.WAKE_WORKER, when="running", at=1.0, ticket=ticket)
    both = [action.model_copy(update={"actor": actor}) for action in (stop, wake) for actor in range(2)]
    return schedule.model_copy(
        update={
            "actions": (Action(what=W.TICKET, ticket=ticket), *schedule.actions, *both),
            "worker_points": (points, points),
            "agent": schedule.agent.model_copy(update={"delay_ms": 500, "model": ""}),
            "run_timeout_ms": 5_000,
        }
    )


def _pick(dice: Random, weights: dict[What, int]) -> What:
    return dice.choices(list(weights), list(weights.values()))[0]


def _arrival(dice: Random, number: int) -> Action:
    return Action(what=W.TICKET, at=dice.uniform(0, SPAN_S / 2) if number else 0.0, ticket=number)


def _of_a_person(dice: Random, seed: int, number: int, tickets: int) -> Action:
    what = _pick(dice, PEOPLE)
    texts = {
        W.MESSAGE: "还没有收到，请再看一下。",
        W.REGENERATE: dice.choice(["", "语气再温和一些"]),
        W.STATUS: dice.choice(["resolved", "closed", "spam", "pending"]),
        W.CLASS: dice.choice(["auto_reply refund", "urgent account", "normal delivery"]),
    }
    # Two people with the same key are one who clicks twice.
    key = f"{seed}-{dice.choice([number, 0])}" if what == W.APPROVE else f"{seed}-{number}"
    waits = what in (W.APPROVE, W.ESCALATE) or dice.random() < 0.2
    return Action(
        what=what,
        at=dice.uniform(0, SPAN_S),
        when="waiting" if waits else "",
        patience=0.4,
        ticket=dice.randrange(tickets),
        actor=dice.randrange(2),
        key=key,
        text=texts.get(what, ""),
    )


def _fault(dice: Random) -> Action:
    return Action(
        what=_pick(dice, FAULTS),
        at=dice.uniform(0, SPAN_S),
        actor=dice.randrange(2),
        lasts=dice.choice([0.05, 0.2, 0.5, 0.9]),
    )


def _worker_points(dice: Random) -> tuple[Point, ...]:
    if dice.random() < 0.4:
        return ()
    place = dice.choices(list(PLACES), list(PLACES.values()))[0]
    faults = ["die"] * 5 + ["freeze"] * 2
    faults += MORE_FAULTS["STATEMENT" if place.isupper() else place.split(":")[0]]
    fault = dice.choice(faults)
    answer_fails = place.isupper() and fault in ("lose_answer", "hang")
    side = "after" if answer_fails else "before" if fault == "refuse" else dice.choice(["before", "after"])
    point = Point(place=place, side=side, nth=1 if place == "channel" else dice.randint(1, 4), fault=fault)
    if place.isupper() and (side, fault) == ("after", "freeze"):
        # Who wakes late learns that its connection is gone, and says it again.
        return (point, point.model_copy(update={"fault": "lose_answer"}))
    return (point,)


def _web_points(dice: Random) -> tuple[Point, ...]:
    place = dice.choice(["commit", "sql"])
    nth = dice.randint(1, 8) if place == "commit" else dice.randint(1, 60)
    fault = dice.choice(["die", "die", "freeze"])
    return (Point(place=place, side=dice.choice(["before", "after"]), nth=nth, fault=fault),)


def _agent(dice: Random, seed: int) -> Agent:
    return Agent(
        delay_ms=dice.choice([0, 2, 10, 40]),
        classify_failures=dice.choice([0] * 8 + [1, 3]),
        insufficient=dice.choice([0] * 8 + [1, 2]),
        refuses=dice.random() < 0.05,
        model=f"{dice.choice(MODELS)};seed={seed}" if dice.random() < MODEL_SHARE else "",
    )
