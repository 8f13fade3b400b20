"""What kind of answer a question wants (a time, a price, a place, a figure), and whether a text holds one. Pure."""

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
_FIGURES = (
    (r"多少瓦|几瓦|功率|\bwatt(?:s|age)?\b", r"\d\s*(?:瓦|千瓦|[kK]?[wW]\b|watts?\b)"),
    (r"多少伏|几伏|电压|\bvolt(?:s|age)?\b", r"\d\s*(?:伏|[vV]\b|volts?\b)"),
    (
        r"多重|重多少|多少(?:公)?斤|重量|\bhow heavy\b|\bhow much does it weigh\b|\bweigh[st]?\b",
        r"\d\s*(?:公斤|千克|斤|克|kg\b|g\b|lbs?\b|pounds?\b)",
    ),
    (
        r"多大(?!.{0,2}(?:年|岁|关系))|尺寸|多[高宽长深](?!时间)|宽高|多少(?:厘米|升)|\bhow (?:big|large|wide|deep)\b",
        r"\d\s*(?:厘米|毫米|公分|米|寸|升|[cm]m\b|[lL]\b|inch(?:es)?\b|lit(?:er|re)s?\b)",
    ),
    (
        r"(?:几|多少)[张台件双次个只份包](?!小时|工作日|月|点)|\bhow many\b(?! (?:\w+ )?(?:days|hours|weeks))",
        r"[\d一二两三四五六七八九十][\d,]*\s*[张台件双次个只份包]|不限|\b(?:\d+|one|two|three|four|five)\b",
    ),
)
_KINDS = tuple(
    (re.compile(asked, re.IGNORECASE), re.compile(given, re.IGNORECASE))
    for asked, given in ((_ASKS_TIME, _TIME), (_ASKS_AMOUNT, _AMOUNT), (_ASKS_PLACE, _PLACE), *_FIGURES)
)
_FIGURE_KINDS = _KINDS[-len(_FIGURES) :]


def wants_kind(question: str) -> bool:
    """Return whether `question` wants a certain kind of answer."""
    return any(asked.search(question) for asked, _ in _KINDS)


def wants_figure(question: str) -> bool:
    """Return whether `question` asks for a measure or a count: without that figure nothing answers it."""
    return any(asked.search(question) for asked, _ in _FIGURE_KINDS)


def has_wanted_kind(question: str, text: str) -> bool:
    """Return whether `text` holds every kind of answer that `question` wants, and it wants one at least."""
    wanted = [given for asked, given in _KINDS if asked.search(question)]
    return bool(wanted) and all(given.search(text) for given in wanted)
