"""Masks what looks like a secret in the arguments of a call, which are kept with its step. Pure."""

import re

MASK = "***"
_SECRET = re.compile(
    r"\b(?:sk|pk|rk|gh[oprsu]|github_pat|glpat|xox[a-z])[-_][a-z0-9_-]{6,}"
    r"|\beyJ[a-z0-9_-]{8,}(?:\.[a-z0-9_-]+){0,2}"
    r"|\bAKIA[0-9A-Z]{12,}"
    r"|\b(?:bearer|basic)\s+[a-z0-9._~+/=-]{8,}"
    r"|(?:password|passwd|pwd|token|api[_ -]?key|secret|密码|口令|密钥)\s*(?:[:=：]|是|为)\s*[!-~]{4,}"
    r"|(?<![a-z0-9_-])(?=[a-z_-]*[0-9])(?=[0-9_-]*[a-z])[a-z0-9_-]{24,}",
    re.IGNORECASE | re.ASCII,
)
"""Keys of well-known services, tokens by their form, `password: ...`, and long codes of letters and digits."""


def without_secrets(value: object) -> object:
    """Return a JSON value with every secret in its strings and keys masked."""
    if isinstance(value, str):
        return _SECRET.sub(MASK, value)
    if isinstance(value, dict):
        return {_SECRET.sub(MASK, str(key)): without_secrets(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [without_secrets(inner) for inner in value]
    return value
