"""Whom a help text is written for: what is meant for merchants is no answer to a consumer. Pure."""

import re

from app.agent.values import Category, Observation, Passage

_FOR_MERCHANTS = re.compile(r"\s*(?:商家|商户|卖家|merchants?\b|sellers?\b)", re.IGNORECASE)
_NAMES_MERCHANTS = re.compile(
    r"商家|商户|卖家|店铺|开.{0,6}店|网店|入驻|我们?家?店|\b(?:merchants?|sellers?|vendors?|my (?:shop|store))\b",
    re.IGNORECASE,
)
_MERCHANT_CHANNEL = "merchant"


def for_the_customer(observation: Observation) -> tuple[Passage, ...]:
    """Return the passages found, without those for merchants where the ticket speaks of none."""
    found = observation.search.passages if observation.search else ()
    ticket, classified = observation.ticket, observation.classification
    is_merchant = ticket.channel == _MERCHANT_CHANNEL or (
        classified is not None and classified.category is Category.MERCHANT
    )
    if is_merchant or _NAMES_MERCHANTS.search(f"{ticket.subject}\n{ticket.content}\n{observation.hint or ''}"):
        return found
    return tuple(one for one in found if not _is_for_merchants(one))


def _is_for_merchants(passage: Passage) -> bool:
    return any(_FOR_MERCHANTS.match(name) for name in (passage.doc_title, passage.heading.rsplit(" > ", 1)[-1]))
