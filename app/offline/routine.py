"""Whether a ticket reads like a standard question (how, where, when, how much) or like a case to look into. Pure."""

import re

from app.offline.words import simplified

_ASKS = re.compile(
    r"怎么|怎样|咋|如何|哪里|哪儿|在哪|哪个|多久|多少|几[天次张台点号件笔家]|什么时候|何时|能不能|可不可以|要不要|是不是|有没有|"
    r"啥|什么|吗|呢|谁|不[？?]|[?？]|\b(?:how|what|when|where|which|who|can i|could i|do i|is it)\b",
    re.IGNORECASE,
)
_TROUBLE = re.compile(
    r"坏了?|碎|裂|破损|漏水|不转|发错|错发|少发|漏发|缺件|丢了|丢件|弄丢|没收到(?!.{0,6}(?:验证码|邮件|短信))|根本没|"
    r"没动静|不动了|停在|没有?更新|拒绝|不同意|不承认|申诉|处罚|判(?:我|定)|投诉|多扣|扣了两|笔都扣|重复扣|骗|差劲|态度|"
    r"失败|用不了|闪退|退出来|白屏|卡死|连不上|打不开|一直(?:不|没|提示|拖)|(?<!我)还没(?:到|退|处理)|不发货|不处理|"
    r"没人(?:理|管|回)|赔(?:偿|我|付)|第[二三四五]次|两次|又(?:坏|不)|一拖再拖|为[什啥]么?只|莫名|"
    r"已经[^，。！？\n]{0,6}(?:发出|寄出|在路上)|"
    r"\b(?:broken|damaged|missing|never arrived|not arrived|not here|crash\w*|twice|refus\w*|complain\w*|wrong)\b",
    re.IGNORECASE,
)


def is_routine(text: str) -> bool:
    """Return whether `text` asks something and tells of nothing that went wrong."""
    plain = simplified(text)
    return _ASKS.search(plain) is not None and _TROUBLE.search(plain) is None
