"""A classifier that needs no model: examples vote by meaning and wording, and readable rules have the last word."""

import asyncio
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.agent.rule_planner import search_query
from app.agent.skill import CallLog
from app.agent.values import Category, Classification, Priority, TicketFacts
from app.errors import Unavailable
from app.llm.embedding import Embedder
from app.offline.examples import Example, example_vectors, load_examples
from app.offline.routine import is_routine
from app.offline.urgency import Ground, Urgency, find_urgency
from app.offline.vote import Likeness, Vote, Voter
from app.offline.words import simplified

CATEGORY_WORDS: Final = {
    Category.COUPON: "优惠券",
    Category.NEW_USER: "新人权益",
    Category.ACCOUNT: "账号",
    Category.REFUND: "退款",
    Category.RETURN_EXCHANGE: "退换货",
    Category.INVOICE: "发票",
    Category.DELIVERY: "物流",
    Category.ORDER_CHANGE: "订单变更",
    Category.MEMBERSHIP: "会员",
    Category.PAYMENT: "支付",
    Category.PRODUCT: "商品",
    Category.MERCHANT: "商家",
    Category.PRIVACY: "隐私",
    Category.COMPLAINT: "投诉",
    Category.TECHNICAL: "技术故障",
    Category.OTHER: "其他",
}
"""How staff call the classes: data in the reasoning, not interface text."""

_FITTING: Final = {
    Ground.SAFETY: (Category.PRODUCT, Category.OTHER),
    Ground.MONEY: (Category.ACCOUNT, Category.PAYMENT),
    Ground.LEAK: (Category.PRIVACY,),
    Ground.LAW: (Category.COMPLAINT,),
    Ground.OUTAGE: (Category.TECHNICAL,),
    Ground.REPEATED: (Category.COMPLAINT,),
}
"""An urgent ground says what the ticket is about, whatever else it mentions."""

ROUTINE_LEAD: Final = -0.2
"""How far `auto_reply` may lie behind `normal` in the vote when the ticket reads like a standard question."""

URGENT_LEAD: Final = 0.5
"""How far `urgent` must lie ahead in the vote to count without a rule: it catches wordings that the rules miss."""

RULE_CONFIDENCE: Final = 0.8
"""The least confidence where a rule decides."""


@dataclass(frozen=True, slots=True)
class _Panel:
    likeness: Likeness
    category: Voter[Category]
    priority: Voter[Priority]


class OfflineClassifier:
    """Implements the Classifier port on any embedder; while that one does not answer, wording alone decides."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._examples = load_examples()
        self._building = Lock()

    async def classify(self, ticket: TicketFacts, calls: CallLog) -> Classification:
        """Return the class of `ticket`. The confidence is calibrated on the examples, each judged by the others."""
        del calls  # Nothing is paid for.
        return await asyncio.to_thread(self._classify, ticket)

    def _classify(self, ticket: TicketFacts) -> Classification:
        text = f"{ticket.subject}\n{ticket.content}"
        try:
            vector = self._embedder.embed_queries([search_query(ticket)])[0]
            panel = self._by_meaning
        except Unavailable:
            vector, panel = None, self._by_wording
        likeness = panel.likeness.of(text, vector)
        nearest = self._examples[int(np.argmax(likeness))]
        urgency = find_urgency(simplified(text))
        category, confidence = _category(panel.category.vote(likeness), urgency, ticket.channel)
        priority = _priority(panel.priority.vote(likeness), urgency, nearest)
        if priority is Priority.AUTO_REPLY and (category is Category.COMPLAINT or not is_routine(text)):
            priority = Priority.NORMAL
        return Classification(
            priority=priority,
            category=category,
            confidence=confidence,
            reasoning=_reasoning(priority, category, urgency, nearest),
        )

    @property
    def _by_meaning(self) -> _Panel:
        with self._building:
            return self._meaning_panel

    @cached_property
    def _meaning_panel(self) -> _Panel:
        return _panel(self._examples, example_vectors(self._examples, self._embedder))

    @cached_property
    def _by_wording(self) -> _Panel:
        return _panel(self._examples, None)


def _panel(examples: tuple[Example, ...], vectors: NDArray[np.float32] | None) -> _Panel:
    likeness = Likeness([example.text for example in examples], vectors)
    among = likeness.among()
    return _Panel(
        likeness,
        Voter([example.category for example in examples], among),
        Voter([example.priority for example in examples], among),
    )


def _category(vote: Vote[Category], urgency: Urgency | None, channel: str) -> tuple[Category, float]:
    chances = vote.probabilities
    if urgency is not None:
        # The rule settles what the ticket is about; among several classes that fit, the examples choose.
        fitting = {category: chances[category] for category in _FITTING[urgency.ground]}
        winner = max(fitting, key=fitting.__getitem__)
        return winner, max(RULE_CONFIDENCE, chances[winner])
    if channel == "merchant":
        return Category.MERCHANT, max(RULE_CONFIDENCE, chances[Category.MERCHANT])
    winner = max(chances, key=chances.__getitem__)
    return winner, chances[winner]


def _priority(vote: Vote[Priority], urgency: Urgency | None, nearest: Example) -> Priority:
    scores = vote.scores
    calm = max(scores[Priority.NORMAL], scores[Priority.AUTO_REPLY])
    if urgency is not None or scores[Priority.URGENT] - calm > URGENT_LEAD:
        return Priority.URGENT
    if nearest.priority is Priority.AUTO_REPLY:
        return Priority.AUTO_REPLY
    lead = scores[Priority.AUTO_REPLY] - scores[Priority.NORMAL]
    return Priority.AUTO_REPLY if lead > ROUTINE_LEAD else Priority.NORMAL


def _reasoning(priority: Priority, category: Category, urgency: Urgency | None, nearest: Example) -> str:
    like = f"与示例“{nearest.text}”最接近（{CATEGORY_WORDS[nearest.category]}）"
    if urgency is not None:
        return f"规则：{urgency.ground.value}（“{urgency.words[:40]}”）；{like}。"
    if priority is Priority.AUTO_REPLY:
        return f"{like}；属于常规咨询，归为{CATEGORY_WORDS[category]}。"
    if priority is Priority.URGENT:
        return f"{like}，与多条紧急示例相似，归为{CATEGORY_WORDS[category]}。"
    return f"{like}；需要人工处理，归为{CATEGORY_WORDS[category]}。"
