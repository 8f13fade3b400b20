"""What must not leave in a reply, and what looks like it but may."""

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.guard.lint import LINT_VERSION, FindingKind, lint

DOCUMENTS = Path(__file__).resolve().parents[2] / "app" / "demo" / "documents"


def labels(text):
    return [finding.label for finding in lint(text)]


@pytest.mark.parametrize(
    ("text", "marked", "label"),
    [
        ("您是白痴吗？", "白痴", "Insulting word"),
        ("有病吧你", "有病吧", "Insulting word"),
        ("请 滚 开", "滚 开", "Insulting word"),
        ("你这个蠢\u200b货", "蠢\u200b货", "Insulting word"),
        ("Don't be STUPID.", "STUPID", "Insulting word"),
        ("ｓｔｕｐｉｄ", "ｓｔｕｐｉｄ", "Insulting word"),
        ("是您自己的问题。", "是您自己的问题", "Blames the customer"),
        ("谁让你不看说明", "谁让你", "Blames the customer"),
        ("随便您投诉", "随便您投诉", "Blames the customer"),
        ("爱买不买。", "爱买不买", "Blames the customer"),
        ("It is your own\nfault.", "your own\nfault", "Blames the customer"),
        ("给您申请了内部价", "内部价", "Internal matter"),
        ("走后门处理", "走后门", "Internal matter"),
        ("您加我微信", "加我微信", "Deal outside the platform"),
        ("我私下转账给您", "私下转账", "Deal outside the platform"),
        ("请您提供短信验证码", "请您提供短信验证码", "Asks for a password or code"),
        ("麻烦提供一下验证码", "麻烦提供一下验证码", "Asks for a password or code"),
        ("请把密码发给我", "把密码发", "Asks for a password or code"),
        ("Please send us your password", "send us your password", "Asks for a password or code"),
        ("我们是全网最低的价格", "全网最", "Absolute claim (advertising law)"),
        ("销量第一的空气炸锅", "销量第一", "Absolute claim (advertising law)"),
        ("这是最好的产品", "最好的产品", "Absolute claim (advertising law)"),
        ("The lowest price ever!", "lowest price ever", "Absolute claim (advertising law)"),
    ],
)
def test_sensitive_words(text, marked, label):
    findings = [finding for finding in lint(text) if finding.label == label]
    assert findings, f"nothing found in {text!r}"
    assert findings[0].kind is FindingKind.SENSITIVE
    assert findings[0].text.startswith(marked)


@pytest.mark.parametrize(
    "text",
    [
        "我们保证三天内到账。",
        "一定会给您退款",
        "明天肯定到账",
        "绝对不会有问题，绝对能解决",
        "100%退款",
        "１００％ 退款",
        "百分之百能退回",
        "退款百分百到账",
        "包您满意",
        "我们承诺赔偿您的损失",
        "必退！",
        "包退款",
        "万无一失",
        "假一赔十",
        "绝不会再发生类似情况",
        "保\u200b证到账",
        "保证\n到账",
        "您放心，我们为您保证到账",
        "We guarantee a full refund.",
        "I promise you will get your refund tomorrow",
        "You will definitely be refunded.",
        "A 100% refund is yours",
        "Your refund is guaranteed",
        "It will never happen again.",
        "我们可以保证全额退款",
        "所以保证全额退款",
        "认为绝对能退款",
        "我们可以承诺退款",
        "因为保证能退款",
        "您的申请肯定能通过",
        "特别保证退款",
        "肯定能退",
        "100 % 退款",
        "百分之100到账",
        "退款百分之百到账",
        "我们担保三天到账",
        "准保到账",
        "打包票给您退款",
        "妥妥到账",
        "保證退款",
        "保证，全额退款",
        "保.证.到.账",
        "**保**证到账",
        "保\u3164证到账",
        "We guаrantee a full refund",
        "保证一定能够在今天之内把所有的款项都给您退款",
    ],
)
def test_promised_outcome(text):
    assert "Promises an outcome" in labels(text)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("款项马上到账", "Promises instant money"),
        ("立刻就能赔付", "Promises instant money"),
        ("支持秒退", "Promises instant money"),
        ("马上给您退钱", "Promises instant money"),
        ("立刻退款", "Promises instant money"),
        ("我们将立即为您全额退款", "Promises instant money"),
        ("We will refund you immediately.", "Promises instant money"),
        ("无条件退款", "Promises without conditions"),
        ("Refunds, no questions asked", "Promises without conditions"),
        ("unconditional refund", "Promises without conditions"),
    ],
)
def test_other_promises(text, label):
    assert labels(text) == [label]


@pytest.mark.parametrize(
    "text",
    [
        "我们不能保证到账时间。",
        "无法保证三天内到账",
        "不保证成功",
        "不能100%保证退款成功",
        "不一定能退款",
        "并不能完全保证送达",
        "在一定程度上可以解决",
        "一定条件下可以退款",
        "请您务必在7天内寄回，以便退款",
        "收到后一定要当面验货再签收，以免影响退款",
        "为了保证退款顺利到账，请核对卡号后四位",
        "为保证及时送达，请填写完整地址",
        "请保证手机畅通，快递会联系您送达",
        "请您保证商品完好，否则无法退款",
        "保证金在关店90天后退回",
        "先保证人的安全：切断电源",
        "按页面承诺的日期发货",
        "支持七天无理由退货",
        "取消后优惠券立即退回",
        "请马上做三件事",
        "最好先截图，再联系我们",
        "最低版本是6.2",
        "请更新到最新版本",
        "滚筒洗衣机安装",
        "傻瓜式操作",
        "废物回收",
        "第一次使用时有轻微气味",
        "如果不是您自己操作的",
        "请勿向任何人提供验证码",
        "不要把东西寄回普通仓",
        "含棉100%",
        "不能马上退款",
        "感谢您的肯定，退款已到账",
        "正品保证，支持退款",
        "担保交易的退款说明",
        "修改密码需要提供旧密码和验证码",
        "我们不能担保到账",
        "如果尺寸<a，并且>b",
        "写信到service@heyan.example或help@heyan.com",
        "价格199、1299、1599元",
        "We cannot guarantee a refund date.",
        "We can't promise that the refund arrives today.",
        "Delivery is not guaranteed.",
        "a dumbbell set, Scunthorpe",
        "You will receive the refund within 5 working days.",
        "Your request was approved.",
        "",
        "   ",
    ],
)
def test_harmless(text):
    assert [(finding.text, finding.label) for finding in lint(text)] == []


def test_personal_data_blocks_but_an_own_address_does_not():
    text = "请致电138 0013 8000或写信到service@heyan.example，热线400-000-0618。"
    (finding,) = lint(text)
    assert (finding.kind, finding.text, finding.label) == (FindingKind.PERSONAL_DATA, "138 0013 8000", "Mobile number")


def test_findings_come_in_order():
    found = lint("白痴，保证退款，电话13800138000，全网最低")
    assert [finding.kind for finding in found] == ["sensitive", "promise", "personal_data", "sensitive"]
    assert [finding.start for finding in found] == sorted(finding.start for finding in found)


def test_own_help_documents_may_be_quoted():
    """Extracted drafts quote them word for word."""
    found = {path.name: lint(path.read_text(encoding="utf-8")) for path in DOCUMENTS.glob("*.md")}
    assert len(found) >= 25
    assert {name: findings for name, findings in found.items() if findings} == {}


def test_version_fits_its_column():
    assert 0 < len(LINT_VERSION) <= 16


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("访问 https://evil.com/pay?x=1，退款", "https://evil.com/pay?x=1"),
        ("https://evil.example", "https://evil.example"),
        ("![](https://evil.com/x.png)", "https://evil.com/x.png"),
        ("请看evil.cn。", "evil.cn"),
        ("去 www.evil.example 看看", "www.evil.example"),
        ("HTTPS://EVIL.COM", "HTTPS://EVIL.COM"),
        ("ev\u200bil.com/pay", "ev\u200bil.com/pay"),
        ("javascript:alert(1)", "javascript:alert"),
        ('<a href="https://evil.com">点我</a>', '<a href="https://evil.com">'),
        ("<script>alert(1)</script>", "<script>"),
        ("<svg/onload=alert(1)>", "<svg/onload=alert(1)>"),
    ],
)
def test_links_from_outside_and_html(text, marked):
    found = [finding for finding in lint(text) if finding.kind is FindingKind.LINK]
    assert found[0].text == marked


def test_a_known_link_may_be_sent_and_nothing_that_only_looks_like_it():
    known = frozenset({"https://help.heyan.example/refunds"})
    assert lint("请看 https://help.heyan.example/refunds。", known) == ()
    for other in (
        "https://help.heyan.example/refunds/x",
        "https://help.heyan.example/refunds@evil.com",
        "https://help.heyаn.example/refunds",
        "https://help.hey\u200ban.example/refunds",
    ):
        assert [finding.label for finding in lint(f"请看 {other} 。", known)] == [
            "Link that stands in no help document"
        ]


PIECES = st.sampled_from(
    [
        "保证",
        "一定",
        "退款",
        "到账",
        "不能",
        "白痴",
        " ",
        "\n",
        "\u200b",
        "１３８",
        "0013",
        "8000",
        "-",
        "全网最低",
        "a@b.co",
        "100%",
        "é",
        "😀",
        "①",
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=20).map("".join))
def test_positions_slice_to_the_text(text):
    for finding in lint(text):
        assert 0 <= finding.start < finding.end <= len(text)
        assert text[finding.start : finding.end] == finding.text


@given(
    st.text(max_size=30),
    st.text(max_size=30),
    st.sampled_from(["白痴", "蠢货", "内部价", "无条件退款", "万无一失", "走后门"]),
    st.lists(st.sampled_from(["", " ", "\n", "\u200b", "\u2060", "\u3000", "\ufe0f"]), min_size=5, max_size=5),
)
def test_a_word_is_found_wherever_it_stands_and_however_it_is_spaced(before, after, word, gaps):
    spelled = "".join(char + gap for char, gap in zip(word[:-1], gaps, strict=False)) + word[-1]
    # "不。" closes whatever clause the random text may have opened before a promise.
    text = f"{before}。{spelled}。{after}"
    start = len(before) + 1
    assert any(f.start <= start + len(spelled) - 1 and f.end > start for f in lint(text))


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "1 ",
        "保证",
        "13",
        "a.b-",
        "1-",
        "<a",
        "13.",
        "6_",
        "https:",
        "一三",
        "保.",
        "we guarantee ",
        "请把",
        "一定",
        "a@a.",
    ],
)
def test_longest_text_takes_no_time(piece):
    text = (piece * 10_000)[:10_000]
    started = time.process_time()
    lint(text)
    assert time.process_time() - started < 2
