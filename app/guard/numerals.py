"""Chinese numerals that measure something, as digits: 三到五个工作日 says the same as 3至5个工作日."""

import re

_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_POWERS = {"十": 10, "百": 100, "千": 1000}
_UNIT = r"(?:个)?(?:工作日|自然日|小时|分钟|天|日|周|月|年|元|折|倍|成)"
_MEASURED = re.compile(
    rf"([零〇一二两三四五六七八九十百千]+)(?=(?:[到至~-][零〇一二两三四五六七八九十百千\d]+)?{_UNIT})"
)


def arabic(text: str) -> str:
    """Return `text` with the Chinese numerals before a unit of time or money written as digits."""
    return _MEASURED.sub(lambda match: str(_value(match[1])), text)


def _value(numeral: str) -> int:
    """Return the number below ten thousand that `numeral` spells: 三十五 is 35, 十 is 10."""
    total, digit = 0, 0
    for char in numeral:
        if char in _POWERS:
            total += (digit or 1) * _POWERS[char]
            digit = 0
        else:
            digit = _DIGITS[char]
    return total + digit
