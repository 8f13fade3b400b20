"""The offline classifier on the real embedder, and on one that does not answer."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from app.agent.skill import CallLog
from app.agent.values import Category, Classification, Priority, TicketFacts
from app.demo.tickets import read_tickets
from app.errors import Unavailable
from app.llm.embedding import Embedder, LocalEmbedder, Vector
from app.offline.classifier import CATEGORY_WORDS, OfflineClassifier
from app.offline.examples import EXAMPLES_FILE, VECTORS_FILE, example_vectors, load_examples
from tests.offline.values import make_facts
from tests.support.ticket_vectors import TicketEmbedder, facts_of


class AwayEmbedder:
    """An embedder whose process is away."""

    name = "away/1"
    dimensions = 8

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        raise Unavailable("The embedder does not answer.")

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        raise Unavailable("The embedder does not answer.")


class TinyEmbedder:
    """Another embedder than the one that the stored vectors were made with."""

    name = "tiny/1"
    dimensions = 8

    def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        counts = [np.bincount([ord(character) % 8 for character in text], minlength=8) for text in texts]
        return [np.asarray(count / np.linalg.norm(count), dtype=np.float32) for count in counts]

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        return self.embed_queries(texts)


@pytest.fixture(scope="module")
def local() -> OfflineClassifier:
    return OfflineClassifier(TicketEmbedder())


def classify(classifier: OfflineClassifier, ticket: TicketFacts) -> Classification:
    return asyncio.run(classifier.classify(ticket, CallLog()))


@pytest.mark.parametrize("category", list(Category))
def test_there_are_enough_examples_of_each_category(category: Category) -> None:
    mine = [example for example in load_examples() if example.category is category]
    assert len(mine) >= 12
    assert category in CATEGORY_WORDS


def test_no_example_is_a_demo_ticket() -> None:
    told = "\n".join(f"{ticket.subject}\n{ticket.content}" for ticket in read_tickets())
    assert [example.text for example in load_examples() if example.text in told] == []


def test_the_stored_vectors_belong_to_the_examples() -> None:
    class Refusing(AwayEmbedder):
        name = LocalEmbedder.name

    assert EXAMPLES_FILE.exists()
    assert VECTORS_FILE.exists()
    assert example_vectors(load_examples(), Refusing()).shape == (len(load_examples()), LocalEmbedder.dimensions)


def test_urgent_is_always_found_and_never_answered_automatically(local: OfflineClassifier) -> None:
    found = {ticket.key: classify(local, facts_of(ticket)) for ticket in read_tickets()}
    expected = {ticket.key for ticket in read_tickets() if ticket.expected_priority is Priority.URGENT}
    assert {key for key, one in found.items() if one.priority is Priority.URGENT} == expected
    right = sum(found[ticket.key].category is ticket.expected_category for ticket in read_tickets())
    assert right / len(found) >= 0.75


@pytest.mark.parametrize(
    ("content", "priority", "category"),
    [
        ("增值税专票要怎么申请，几天能开出来？", Priority.AUTO_REPLY, Category.INVOICE),
        ("会员的自动续费在哪里关？", Priority.AUTO_REPLY, Category.MEMBERSHIP),
        ("快递一个星期没有更新了，包裹是不是丢了", Priority.NORMAL, Category.DELIVERY),
        ("昨晚有人登录了我的账号，余额被转走了", Priority.URGENT, Category.ACCOUNT),
        ("Where can I download the invoice for my order?", Priority.AUTO_REPLY, Category.INVOICE),
    ],
)
def test_single_tickets(local: OfflineClassifier, content: str, priority: Priority, category: Category) -> None:
    found = classify(local, make_facts(content, subject="咨询"))
    assert (found.priority, found.category) == (priority, category)
    assert 0.3 < found.confidence <= 1
    assert "示例" in found.reasoning


def test_a_merchants_question_is_a_merchants_question(local: OfflineClassifier) -> None:
    facts = make_facts("钱什么时候到账，手续费怎么算", channel="merchant")
    assert classify(local, facts).category is Category.MERCHANT


@pytest.mark.parametrize("embedder", [AwayEmbedder(), TinyEmbedder()], ids=["away", "another"])
def test_it_works_with_any_embedder_and_with_none(embedder: Embedder) -> None:
    found = classify(OfflineClassifier(embedder), make_facts("电子发票在哪里申请，抬头怎么改", subject="开发票"))
    assert found.category is Category.INVOICE
    burning = classify(OfflineClassifier(embedder), make_facts("电饭煲起火了", subject="起火"))
    assert burning.priority is Priority.URGENT


@pytest.mark.parametrize("content", ["啊", "？", "x" * 9_999, "​", "🔥" * 400, "发票" * 5_000])
def test_any_ticket_gets_a_class(local: OfflineClassifier, content: str) -> None:
    found = classify(local, make_facts(content))
    assert len(found.reasoning) <= 500
