"""The decision on a run whose worker died, from facts alone."""

import pytest

from app.runs.fate import SET_ASIDE_CODE, StalePolicy

SAFE = frozenset({"draft_reply", "plan"})


@pytest.mark.parametrize(
    ("retry", "deaths", "unfinished", "newer_message", "decided"),
    [
        (False, 1, (), False, ("worker_lost", "policy", False)),
        (False, 1, (), True, ("worker_lost", "policy", False)),
        (True, 1, (), False, ("worker_lost", "policy", True)),
        (True, 2, ("draft_reply",), False, ("worker_lost", "policy", True)),
        (True, 1, ("draft_reply", "plan"), True, ("worker_lost", "newer_message", True)),
        (True, 1, ("send_money",), False, ("worker_lost", "not_retry_safe", False)),
        (True, 1, ("draft_reply", "send_money"), True, ("worker_lost", "not_retry_safe", False)),
        (True, 3, (), False, (SET_ASIDE_CODE, "max_deaths", False)),
        (False, 4, ("send_money",), True, (SET_ASIDE_CODE, "max_deaths", False)),
    ],
)
def test_what_becomes_of_a_run(
    retry: bool, deaths: int, unfinished: tuple[str, ...], newer_message: bool, decided: tuple[str, str, bool]
) -> None:
    policy = StalePolicy(retry, max_deaths=3, retry_safe=SAFE)
    fate = policy.judge(deaths=deaths, unfinished=unfinished, newer_message=newer_message)
    assert (fate.code, fate.reason, fate.retry) == decided
    assert fate.message
