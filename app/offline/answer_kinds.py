"""What kind of answer a question wants (how long, how much, where), and whether a text holds one. Pure."""

import re

_ASKS_TIME = (
    r"多久|多长时间|几天|几个?(?:小时|工作日|月|点)|什么时候|啥时候|何时|时间限制|期限|到账|\bhow long\b|\bwhen\b"
)
_TIME = (
    r"\d\s*个?(?:工作日|小时|分钟|天|日|个?月|年)|\d{1,2}:\d\d|次日|当天|即时|立即|"
    r"\d+ (?:\w+ )?(?:day|hour|week|month)s?"
)
_ASKS_AMOUNT = (
    r"多少钱|收费|费用|要钱|要交|运费|邮费|手续费|扣点|多少[元块]|抵多少|加钱|掏钱|谁[出付掏]|"
    r"\bhow much\b|\bcosts?\b|\bfees?\b"
)
_AMOUNT = r"\d[\d,.]*\s*(?:元|块|%)|免费|不收|承担|免运费|[$€£¥]\s?\d|\bfree\b"
_ASKS_PLACE = r"在哪|哪里|哪儿|入口|怎么(?!算|回事)|怎样|咋|如何|\bhow (?:do|can|to)\b|\bwhere\b"
_PLACE = r"→|路径|“我的|点“|打开“|^\s*1[.、]|\bgo to\b|\bclick\b|\bopen\b"
_KINDS = tuple(
    (re.compile(asked, re.IGNORECASE), re.compile(given, re.IGNORECASE))
    for asked, given in ((_ASKS_TIME, _TIME), (_ASKS_AMOUNT, _AMOUNT), (_ASKS_PLACE, _PLACE))
)


def has_wanted_kind(question: str, text: str) -> bool:
    """Return whether `text` holds every kind of answer that `question` wants, and it wants one at least."""
    wanted = [given for asked, given in _KINDS if asked.search(question)]
    return bool(wanted) and all(given.search(text) for given in wanted)
