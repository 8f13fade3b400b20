"""The rules of urgency, one row a wording; none of them is a demo ticket."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.clock import monotonic
from app.offline.urgency import Ground, find_urgency
from app.offline.words import simplified

URGENT = [
    (Ground.SAFETY, "电热毯半夜窜出火星，床单烧了个洞，人没事"),
    (Ground.SAFETY, "插上电就会冒烟，已经拔了"),
    (Ground.SAFETY, "没用两次就冒烟了"),
    (Ground.SAFETY, "无缘无故漏电，我妈被电了一下"),
    (Ground.SAFETY, "孩子手指被料理机刀片割了一下，缝了两针"),
    (Ground.SAFETY, "锅把手断了，热油洒出来把我妈的脚烫了"),
    (Ground.SAFETY, "碰到水管手会发麻，不太敢用"),
    (Ground.SAFETY, "空气炸锅起火了"),
    (Ground.SAFETY, "The kettle started smoking, so I unplugged it."),
    (Ground.SAFETY, "My son got an electric shock from the fryer"),
    (Ground.MONEY, "有陌生设备登录了我的号，改了密码"),
    (Ground.MONEY, "账户里两笔订单不是我下的，请核实"),
    (Ground.MONEY, "卡里的钱被人花了八百"),
    (Ground.MONEY, "礼品卡余额被转走了，麻烦看看"),
    (Ground.MONEY, "Someone hacked my account"),
    (Ground.MONEY, "I didn't place this order"),
    (Ground.LAW, "如果周五前不退款我就起诉"),
    (Ground.LAW, "我不想走到法院那一步，请认真处理"),
    (Ground.LAW, "材料已递交消费者协会"),
    (Ground.LAW, "你们再拖我会报警的"),
    (Ground.LAW, "本地报社的记者想了解这件事"),
    (Ground.LAW, "My lawyer will contact you next week"),
    (Ground.LEAK, "登进去看到的是别人的订单和地址"),
    (Ground.LEAK, "我的个人资料好像被你们卖给贷款公司了"),
    (Ground.LEAK, "有人冒充你们客服骗走我八千"),
    (Ground.LEAK, "接到自稱客服的電話，讓我報驗證碼，被騙了三千"),
    (Ground.OUTAGE, "我同事还有隔壁部门的人都打不开APP"),
    (Ground.OUTAGE, "Nobody in our office can log in since this morning"),
    (Ground.REPEATED, "同一件事投诉三回了，叫你们主管出来处理"),
    (Ground.REPEATED, "This is my third complaint, I want to speak to a manager"),
]

HARMLESS = [
    "空气炸锅气炸我了！！！为什么还不发货",
    "什么垃圾平台，骗子！！！再也不买了！！！",
    "优惠券用不了！！！气死我了！！",
    "这水壶会不会漏电啊，想给老人买",
    "怎么防止烫伤？有儿童锁吗",
    "如果起火了怎么办，有保险吗",
    "收到的碗碎了，幸好没有受伤",
    "烟雾报警器一直报警怎么关",
    "面单会不会泄露我的电话",
    "价格跳楼价，太划算了，直播间火爆",
    "个体工商户能入驻吗，工商银行卡能提现吗",
    "商品曝光量太低怎么报名活动",
    "放在门口的包裹好像被偷了",
    "礼品卡过期了，钱是不是没了",
    "锅底划伤了锅面，要求换货",
    "退款怎么还没到，第三次问了",
    "App升级后多次闪退，请处理",
    "很多商品页面打不开",
    "大家都说好用，为什么我打不开盖子",
    "感觉被骗了，料子和图片差太多",
    "I need my refund NOW!!! This is ridiculous!!!",
    "Is this pan fine for an open fire?",
]


@pytest.mark.parametrize(("ground", "text"), URGENT)
def test_what_is_said_to_have_happened_is_urgent(ground: Ground, text: str) -> None:
    found = find_urgency(simplified(text))
    assert found is not None
    assert found.ground is ground


@pytest.mark.parametrize("text", HARMLESS)
def test_loud_imagined_or_negated_is_not(text: str) -> None:
    assert find_urgency(text) is None


@given(st.text(max_size=300))
def test_any_text_is_judged(text: str) -> None:
    found = find_urgency(text)
    assert found is None or found.words in text


def test_long_hostile_text_is_judged_quickly() -> None:
    started = monotonic()
    for text in ("投诉" * 5_000, "自称" * 5_000, "complain " * 1_100, "大家" * 5_000, "账号" * 5_000, "(" * 10_000):
        find_urgency(text)
    assert monotonic() - started < 5
