"""What becomes of a run whose worker died: decided from facts alone, with the reason that its event gives."""

from collections.abc import Collection
from dataclasses import dataclass

from app.msgids import msgid

WORKER_LOST = msgid("The process that worked on this run no longer answers.")
SET_ASIDE_CODE = "set_aside"
SET_ASIDE = msgid("The processes that worked on this run died again and again, so it was set aside for a person.")


@dataclass(frozen=True, slots=True)
class Fate:
    """How such a run fails: code and words, why it was decided so, and whether a new run goes on with the work."""

    code: str
    message: str
    reason: str
    retry: bool = False


@dataclass(frozen=True, slots=True)
class StalePolicy:
    """What the operator wants. `retry_safe` names the skills that may be begun once more after a worker died in them;
    a run whose workers died `max_deaths` times is set aside for a person."""

    retry: bool
    max_deaths: int
    retry_safe: frozenset[str]

    def judge(self, *, deaths: int, unfinished: Collection[str], newer_message: bool) -> Fate:
        """Decide on a run whose workers died `deaths` times, the last one within the skills `unfinished`.

        `newer_message` says that the customer has written since the run was claimed.
        """
        if deaths >= self.max_deaths:
            return Fate(SET_ASIDE_CODE, SET_ASIDE, "max_deaths")
        if not self.retry:
            return Fate("worker_lost", WORKER_LOST, "policy")
        if not self.retry_safe.issuperset(unfinished):
            return Fate("worker_lost", WORKER_LOST, "not_retry_safe")
        return Fate("worker_lost", WORKER_LOST, "newer_message" if newer_message else "policy", retry=True)
