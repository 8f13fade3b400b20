"""What is found, in which order, and what the search says of it."""

import asyncio
import threading

import pytest

from app.agent.values import Sufficiency
from app.bootstrap import Container
from app.demo.vectors import demo_vectors
from app.knowledge.ingestion import Ingestion
from app.knowledge.retrieval import KnowledgeSearch, Role
from app.knowledge.sufficiency import NOTHING_TO_SEARCH
from app.settings import ROOT
from tests.knowledge.conftest import AddText, CountingEmbedder
from tests.knowledge.support import AwayEmbedder

COUPONS = """# 优惠券使用说明

## 为什么优惠券不能用

- C-101：还没到生效时间，或者已经过期。
- C-103：金额没到门槛，门槛不含运费和礼品卡。

## 领取与有效期

每种券每个账号限领一张。有效期以券面为准，过期自动失效，不能延期。
"""
PASSWORD = "# 找回密码\n\n## 忘记密码怎么办\n\n在登录页点“忘记密码”，用绑定的手机号收验证码，再设置新密码。\n"
DELIVERY = "# 配送时效\n\n## 偏远地区\n\n新疆、西藏、青海下单后7至10天送达，运费另计。\n"


@pytest.fixture
def base(publish: AddText) -> None:
    publish("coupon.md", COUPONS)
    publish("password.md", PASSWORD)
    publish("delivery.txt", DELIVERY)


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("券过期了还能用吗", "优惠券使用说明"),
        ("提示C-103是什么意思", "优惠券使用说明"),
        ("提示Ｃ－１０３", "优惠券使用说明"),
        ("c103", "优惠券使用说明"),
        ("忘記密碼怎麼辦", "找回密码"),
        ("登不进去了，密码想不起来", "找回密码"),
        ("寄到乌鲁木齐要几天", "配送时效"),
        ("How do I reset my password?", "找回密码"),
    ],
)
def test_the_fitting_document_comes_first(search: KnowledgeSearch, query: str, title: str) -> None:
    assert search.explain(query).result.passages[0].doc_title == title


@pytest.mark.usefixtures("base")
def test_a_passage_says_where_it_comes_from_and_why_it_was_found(search: KnowledgeSearch) -> None:
    explained = search.explain("C-103 金额门槛")

    best = explained.result.passages[0]
    assert (best.ref, best.heading, best.vector_rank, best.keyword_rank) == ("kb-1", "为什么优惠券不能用", 1, 1)
    assert "C-101" in best.text, "the whole section is there to answer with"
    assert best.vector_score is not None
    assert 0 < best.vector_score <= 1
    assert best.keyword_score is not None
    assert best.keyword_score > 0
    assert [hit.rank for hit in explained.hits] == list(range(1, len(explained.hits) + 1))
    assert explained.parts[0].judged is not None


@pytest.mark.usefixtures("base")
def test_two_questions_are_both_answered_from(search: KnowledgeSearch, embedder: CountingEmbedder) -> None:
    explained = search.explain("想问两件事\n忘记密码怎么办？另外寄新疆要几天？")

    assert len([part for part in explained.parts if part.role is Role.QUESTION]) == 2
    assert {passage.doc_title for passage in explained.result.passages[:2]} == {"找回密码", "配送时效"}
    assert len(embedder.queries) == 1, "all texts are embedded in one request, under one deadline"


def test_a_section_is_given_once_however_many_of_its_pieces_fit(publish: AddText, search: KnowledgeSearch) -> None:
    pairs = "\n\n".join(f"问：发票第{n}种情况怎么开？\n答：发票第{n}种情况这样开。" for n in range(4))
    publish("invoice.txt", f"发票问答\n\n{pairs}")

    explained = search.explain("发票怎么开")

    assert len(explained.hits) == 4
    assert len(explained.result.passages) == 1


def test_an_empty_base_is_insufficient_and_says_so(search: KnowledgeSearch) -> None:
    verdict = search.explain("退款多久到账").verdict

    assert (verdict.outcome, verdict.reason) == (Sufficiency.INSUFFICIENT, NOTHING_TO_SEARCH)


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize("query", ["不", "款", "？？？", "🙂", "zzzzqqq", "的了吗", "x" * 5_000, "退款\0多久"])
def test_odd_queries_are_answered(search: KnowledgeSearch, query: str) -> None:
    explained = search.explain(query)

    assert 0 <= explained.verdict.probability <= 1
    assert explained.verdict.outcome is not Sufficiency.SUFFICIENT


@pytest.mark.usefixtures("base")
def test_without_an_embedder_keywords_find_and_the_result_says_so(container: Container) -> None:
    search = KnowledgeSearch(container.sessions, AwayEmbedder(), container.settings)

    result = search.explain("提示C-103").result

    assert result.keyword_only
    assert result.passages[0].doc_title == "优惠券使用说明"
    assert result.passages[0].vector_score is None


@pytest.mark.usefixtures("base")
@pytest.mark.parametrize("fusion", ["minmax", "rrf"])
def test_both_strategies_can_be_set(container: Container, embedder: CountingEmbedder, fusion: str) -> None:
    settings = container.settings.model_copy(update={"retrieval_fusion": fusion})
    explained = KnowledgeSearch(container.sessions, embedder, settings).explain("忘记密码怎么办", 2)

    assert explained.strategy == fusion
    assert explained.result.passages[0].doc_title == "找回密码"
    assert len(explained.result.passages) == 2


@pytest.mark.usefixtures("base")
def test_the_port_of_the_agent_gives_the_same(search: KnowledgeSearch) -> None:
    assert asyncio.run(search.search("忘记密码怎么办")) == search.explain("忘记密码怎么办").result


def test_replacing_under_search_never_shows_none_or_both_versions(
    publish: AddText, upload: AddText, ingestion: Ingestion, search: KnowledgeSearch
) -> None:
    publish("fee.md", "# 运费\n\n偏远地区运费每单0元。")
    seen: set[tuple[str, ...]] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            found = search.explain("偏远地区运费每单多少元").result.passages
            seen.add(tuple(sorted(passage.text for passage in found)))

    looking = threading.Thread(target=look)
    looking.start()
    try:
        for number in range(1, 9):
            ingestion.run(upload("fee.md", f"# 运费\n\n偏远地区运费每单{number}元。"))
    finally:
        stop.set()
        looking.join()

    assert {len(texts) for texts in seen} == {1}
    assert len(seen) > 1


def test_what_the_base_does_not_say_is_never_sufficient(
    container: Container, upload: AddText, embedder: CountingEmbedder, search: KnowledgeSearch
) -> None:
    shipped = Ingestion(container.transaction, embedder, demo_vectors(embedder.name))
    for path in sorted((ROOT / "app/demo/documents").glob("*.md"))[:12]:
        shipped.run(upload(path.name, path.read_bytes()))
    assert embedder.passages == [], "the vectors that ship are those of the documents that ship"

    for question in ("空气炸锅的功率是多少瓦", "你们招聘应届生吗", "明天天气怎么样", "洗碗机开孔尺寸留多少"):
        assert search.explain(question).verdict.outcome is not Sufficiency.SUFFICIENT
    assert search.explain("优惠券能不能叠加使用").verdict.outcome is Sufficiency.SUFFICIENT
