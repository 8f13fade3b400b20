"""A ticket taken apart into what it asks."""

import pytest

from app.offline.questions import questions
from app.offline.words import bag, pieces, simplified
from tests.offline.values import make_facts


@pytest.mark.parametrize(
    ("content", "asked"),
    [
        ("退款几天到？另外发票怎么开？", ("退款几天到？", "另外发票怎么开？")),
        ("刚下单。能改地址吗，要加钱吗", ("能改地址吗", "要加钱吗")),
        ("包裹碎了，是补发还是退款？", ("包裹碎了，是补发还是退款？",)),
        ("How do I pay? And when does it arrive?", ("How do I pay?", "And when does it arrive?")),
        ("请尽快处理。", ("标题\n请尽快处理。",)),
        ("", ("标题\n",)),
    ],
)
def test_questions(content: str, asked: tuple[str, ...]) -> None:
    assert questions(make_facts(content, subject="标题")) == asked


def test_words_meet_across_spellings() -> None:
    assert simplified("尋問退貨運費") == "寻问退货运费"
    assert set(pieces("退貨運費")) == set(pieces("退货运费")) == {"退货", "货运", "运费"}
    assert bag("Coupon C-103 满199减20") == bag("coupon c-103 滿199減20")
    assert pieces("how is my order") == ["order"]
    assert pieces("券") == ["券"]
