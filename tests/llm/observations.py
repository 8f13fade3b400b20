"""Observations that the model-backed parts are asked about."""

from app.agent.values import (
    Category,
    Classification,
    Observation,
    Passage,
    PastTicket,
    Priority,
    SearchResult,
    Sufficiency,
    TicketFacts,
    Verdict,
)
from app.ids import new_id

REFUND_RULE = "退款在审核通过后的3至5个工作日内原路退回。如超时未到账，请提供订单号核实。"
COUPON_RULE = "一笔订单最多同时用三张：一张平台券、一张店铺券、一张运费券。"


def ticket(content: str = "钱什么时候退回来？", subject: str = "退款多久到账") -> TicketFacts:
    """A ticket of a customer who wrote once before."""
    past = (PastTicket(number=7, subject="发票抬头写错", status="resolved", category="invoice"),)
    return TicketFacts(
        ticket_id=new_id(),
        number=42,
        channel="web",
        subject=subject,
        content=content,
        customer_name="陈雨桐",
        past=past,
    )


def passage(ref: str, text: str, title: str = "退款多久到账") -> Passage:
    """A passage as a search returns it."""
    return Passage(
        ref=ref,
        chunk_id=new_id(),
        doc_id=new_id(),
        doc_version=3,
        doc_title=title,
        heading="到账时间",
        text=text,
        vector_score=0.8,
        vector_rank=1,
        keyword_score=None,
        keyword_rank=None,
        fused=0.9,
    )


def found(outcome: Sufficiency = Sufficiency.SUFFICIENT, *passages: Passage) -> SearchResult:
    """What a search found: by default the rule on refunds, then the one on coupons."""
    given = passages or (passage("kb-1", REFUND_RULE), passage("kb-2", COUPON_RULE, "优惠券"))
    verdict = Verdict(outcome=outcome, probability=0.9, reason="two good passages")
    return SearchResult(query="退款 到账", passages=given, verdict=verdict)


def ready_to_draft(**changes: object) -> Observation:
    """An observation after classifying and searching."""
    classification = Classification(
        priority=Priority.NORMAL, category=Category.REFUND, confidence=0.9, reasoning="asks when"
    )
    start = Observation(ticket=ticket(), classification=classification, search=found(), searches=1)
    return start.model_copy(update=changes)
