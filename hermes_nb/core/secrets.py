"""Finding secrets in text and telling secret names from ordinary ones. Knows no store and no front end.

Masking is a net with holes, not a wall: it knows the shapes of common keys and the words beside them. Short ordinary
words stay readable, because a masked word in a file that the model writes back would be a loss.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise

MASK = "[masked]"
"""Stands where a secret stood."""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MIN_KNOWN = 8
_MIN_GIVEN = 6
SECRET_WORD = (
    r"(?:pass(?:word|wd|phrase)|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|secret[_-]?key"
    r"|密码|密钥|口令|パスワード|비밀번호|contraseña|passwort|пароль)"
)
"""A word beside which a secret stands."""
FOREIGN_WORDS = ("密码", "密钥", "口令", "パスワード", "비밀번호", "contraseña", "пароль")
_WORDS_LOWER = (
    "pass", "pwd", "secret", "token", "key", "密", "口令", "パスワード", "비밀번호", "contraseña", "пароль",
)  # fmt: skip
_PLACEHOLDERS = _set(
    "string integer number boolean required optional pass passwd password pwd secret token username changeme example "
    "placeholder undefined disabled enabled deprecated unchanged protected authorization"
)

_TOKENS = re.compile(
    r"""(?<![A-Za-z0-9_])(?:
      sk-[A-Za-z0-9_-]{16,}                                 # OpenAI, Anthropic, OpenRouter, DeepSeek
    | [sr]k_(?:live|test)_[A-Za-z0-9]{16,}                  # Stripe
    | (?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])              # AWS
    | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,} | glpat-[A-Za-z0-9_-]{18,}
    | xox[abeoprs]-[A-Za-z0-9-]{10,} | xapp-[A-Za-z0-9-]{20,}
    | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{20,}     # Google
    | (?:hf|npm|gsk|pplx|nvapi|r8|dop_v1|shpat)[_-][A-Za-z0-9_-]{20,} | xai-[A-Za-z0-9]{20,}
    | pypi-[A-Za-z0-9_-]{30,} | SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}
    | \d{8,10}:AA[A-Za-z0-9_-]{30,}                         # Telegram
    | [MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}   # Discord
    | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}        # JSON web token
    )""",
    re.VERBOSE,
)
TOKEN_STARTS = (
    r"sk-|[sr]k_(?:live|test)_|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|xapp-|AIza|ya29\.|hf_|npm_|gsk_|pplx-"
    r"|nvapi-|r8_|dop_v1_|shpat_|xai-|pypi-|SG\.|eyJ"
)
"""How keys of known kinds begin."""
KEY_BLOCK_LENGTH = 12_000
"""A private key is shorter; an end that comes later belongs to another block."""
_BLOCK_BEGIN = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_END = re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_BLOCK_REST = re.compile(r"(?:\s{0,4}[A-Za-z0-9+/=]{6,})+")
_HEADER = re.compile(
    r"""((?:proxy-)?authorization["']?\s{0,4}[:=]\s{0,4}(["']?)((?:bearer|basic|token|bot|digest)\s{1,4})?+)(?!\[masked)"""
    r"""([^\s"',;}\]]{6,})""",
    re.IGNORECASE,
)
_COOKIE = re.compile(
    r"""((?:^|[\s"'])(?:set-)?cookie["']?\s{0,4}:\s{0,4}["']?)([\w.$-]{1,80}=[^\s"'={][^\n"']{3,})""", re.IGNORECASE
)
_BEARER = re.compile(r"(\bbearer\s{1,4})([A-Za-z0-9._~+/=-]{12,})", re.IGNORECASE)
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,100}:)([^\s/@\"'<>]{1,200})(@)")
_WEBHOOK = re.compile(
    r"(https://(?:hooks\.slack\.com/services/|(?:\w{1,20}\.)?discord(?:app)?\.com/api/webhooks/\d{1,30}/))([A-Za-z0-9_/-]{8,})"
)
_QUOTED = re.compile(
    rf"""((?:public[_-]?key[_-]?)?({SECRET_WORD})["']?\s{{0,4}}[:=：]\s{{0,4}})(["'])([^"'\n]{{4,500}})(\3)""",
    re.IGNORECASE,
)
_BARE = re.compile(
    rf"""(({SECRET_WORD})\s{{0,2}}[:=：]\s{{0,2}})([^\s"'&,;()\[\]{{}}<>]{{6,500}}+)(?![(\[])""",
    re.IGNORECASE,
)
# What stands in code and in forms where a secret could stand: a colour, a type, a format, a token of a tokenizer.
_HARMLESS = re.compile(
    r"""\#[0-9A-Fa-f]{3,8} | \[[^\]]*\]? | [<${:].* | .*(?:%(?:\(\w+\))?[sdr]\b|\{\w*\}).* | [A-Za-z]+\?
    | .*\*{3,}.* | (?:your|some|example|dummy|fake)[_-].* | my[_-](?:secret|token|password|key|api[_-]?key) | (?:https?|file)://.*
    | [~./]{1,2}/.*""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_NUMBER = re.compile(r"[+-]?(?:0[xX][0-9A-Fa-f_]+|[\d_,]*\.?\d+(?:[eE][+-]?\d+)?[kKmM%]?)[.,;:!?]*")
_ASCII = "".join(map(chr, range(33, 127)))
_DOTTED = re.compile(r"[A-Za-z_]\w*(?:[.:][A-Za-z_]\w*)+")
_ENV_LINE = re.compile(r"^((?:export\s+)?([A-Z][A-Z0-9_]{2,80})=)([\"']?)([^\s\"'$#]{4,500})(\3)[ \t]*$", re.MULTILINE)

_SECRET_WORDS = _set(
    "password passwd pwd passphrase passcode secret secrets credential credentials apikey apitoken authtoken bearer"
)
_LAST_WORDS = _set("token cookie jwt pat auth")
_KEY_OWNERS = _set(
    "api access private secret signing encryption master auth account storage shared ssh hmac session deploy "
    "openai anthropic azure aws gcp google github gitlab stripe mistral groq deepseek openrouter huggingface"
)
_MEASURES = _set(
    "count counts length len size policy limit min max id ids name names type pattern field file path dir url uri env"
)


# Secrets that this process has read from somewhere; masked wherever they turn up.
_known: set[str] = set()


def remember(value: str | None) -> None:
    """Mask ``value`` from now on in everything that this process masks; a short value is ignored."""
    if value and len(value) >= _MIN_KNOWN:
        _known.add(value)


def known_values(values: Iterable[str] = ()) -> tuple[str, ...]:
    """Return every value that ``mask`` looks for now, longest first: ``values``, remembered ones, the environment's."""
    given = {value for value in values if len(value) >= _MIN_GIVEN}
    # A value that is part of the mask itself would be found in it again.
    return tuple(sorted((v for v in given | _known | _of_environment() if v not in MASK), key=len, reverse=True))


def mask(text: str, values: Iterable[str] = ()) -> str:
    """Return ``text`` with secrets replaced by ``[masked]``. Linear in the text; a second time changes nothing.

    Masked are ``values``, what ``remember`` was told, the values of environment variables with secret names, and
    whatever has the shape of a secret.
    """
    return mask_known(text, known_values(values))


def mask_known(text: str, known: Iterable[str]) -> str:
    """``mask`` for many texts at one moment: ``known`` is what ``known_values`` returned."""
    for value in known:
        text = text.replace(value, MASK)
    if len(text) < 8:
        return text
    # Most text has none of the words; looking for them first makes masking several times as fast.
    lower = text.lower()
    if "private key" in lower:
        text = _without_key_blocks(text)
    if "authorization" in lower:
        text = _HEADER.sub(_header, text)
    if "cookie" in lower:
        text = _COOKIE.sub(lambda found: f"{found[1]}{MASK}", text)
    text = _TOKENS.sub(lambda found: MASK if _has_digit(found[0]) else found[0], text)
    if "bearer" in lower:
        text = _BEARER.sub(lambda found: f"{found[1]}{MASK}" if _has_digit(found[2]) else found[0], text)
    if "://" in text:
        text = _URL.sub(lambda found: found[0] if _ordinary(found[2]) else f"{found[1]}{MASK}{found[3]}", text)
        text = _WEBHOOK.sub(lambda found: f"{found[1]}{MASK}", text)
    if any(word in lower for word in _WORDS_LOWER):
        text = _QUOTED.sub(_quoted, text)
        text = _BARE.sub(_bare, text)
    return _ENV_LINE.sub(_env_line, text) if "=" in text else text


def secret_values(variables: Mapping[str, object]) -> list[str]:
    """Return the values of variables with secret names that are worth masking: text of at least 8 characters.

    An ordinary word is left out: it would be masked wherever it stands (``token = "language"`` in a loop over words).
    """
    found: list[str] = []
    for name, value in variables.items():
        if not isinstance(value, str) or len(value) < _MIN_KNOWN or not is_secret_name(name):
            continue
        weak = name.rstrip("_").lower().rsplit("_", 1)[-1] in _LAST_WORDS
        looks_ordinary = value.isalpha() and len(value) < 16 if weak else value.lower() in _PLACEHOLDERS
        if not looks_ordinary and not _a_place(value) and value not in os.environ:
            found.append(value)
    return found


def mask_keys(text: str) -> str:
    """Return ``text`` with known secrets and plain keys masked, and nothing else.

    For what a person is asked to allow. ``mask`` also takes what stands beside words such as "password" or between
    the lines of a key block; whoever writes the text could hide code there from the eyes that must judge it.
    """
    for value in sorted(_known | _of_environment(), key=len, reverse=True):
        text = text.replace(value, MASK)
    return _TOKENS.sub(lambda found: MASK if _has_digit(found[0]) else found[0], text)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Tell whether a variable, setting or environment name is likely to hold a secret.

    ``api_key``, ``DB_PASSWORD``, ``authToken`` are; ``n_tokens``, ``tokenizer``, ``primary_key``, ``key`` are not.
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name)
    words = [word for word in re.split(r"[^a-z0-9]+", spaced.lower()) if word]
    if not words or (words[-1] in _MEASURES and len(words) > 1):
        return False
    if any(word in _SECRET_WORDS for word in words) or words[-1] in _LAST_WORDS:
        return True
    return any(word in ("key", "keys") and before in _KEY_OWNERS for before, word in pairwise(words))


def _of_environment() -> set[str]:
    # An ordinary word as a password (DB_PASSWORD=postgres) would mask that word everywhere, and a folder (PWD) every
    # path below it.
    return {
        value
        for name, value in os.environ.items()
        if len(value) >= _MIN_KNOWN
        and is_secret_name(name)
        and (_has_digit(value) or len(value) >= 16)
        and not _a_place(value)
    }


def _a_place(value: str) -> bool:
    return value.startswith(("/", "~", ".", "http:", "https:")) or value[1:3] == ":\\"


def _without_key_blocks(text: str) -> str:
    parts: list[str] = []
    at = 0
    for begin in _BLOCK_BEGIN.finditer(text):
        if begin.start() < at:
            continue
        dashes = text.find("-----END ", begin.end(), begin.end() + KEY_BLOCK_LENGTH)
        end = _BLOCK_END.match(text, dashes) if dashes >= 0 else _BLOCK_REST.match(text, begin.end())
        if end is not None and end.end() > begin.end():
            parts += (text[at : begin.start()], MASK)
            at = end.end()
    return "".join([*parts, text[at:]])


def _has_digit(value: str) -> bool:
    # Checked here and not by a lookahead: lookaheads made these patterns quadratic on repetitive text.
    return any("0" <= char <= "9" for char in value)


def _ordinary(value: str) -> bool:
    """Tell whether a value is a word or a piece of code rather than a secret."""
    bare = value.strip()
    if not bare or bare.lower() in _PLACEHOLDERS or set(bare) <= set("*.xX-_") or MASK in bare:
        return True
    if _HARMLESS.fullmatch(bare) or _DOTTED.fullmatch(bare):
        return True
    return bare.isalpha() and len(bare) < 8 and (bare.islower() or bare.istitle())


def _header(found: re.Match[str]) -> str:
    value = found[4]
    literal = found[3] or (found[2] and (_has_digit(value) or len(value) >= 16))
    if not literal and (not _has_digit(value) or any(char in value for char in "([{`")):
        return found[0]
    return found[0] if value[0] in "<{$%" else f"{found[1]}{MASK}"


def _quoted(found: re.Match[str]) -> str:
    value = found[4]
    # A sentence beside such a word is a label ("password": "Enter your password"), not a secret.
    is_label = any(char.isspace() for char in value) and not _has_digit(value) and "phrase" not in found[2].lower()
    is_word = found[2].lower() == "token" and value.isalpha() and len(value) < 16
    if is_label or is_word or _ordinary(value) or _foreign(found[2], value) or found[1].lower().startswith("public"):
        return found[0]
    return f"{found[1]}{found[3]}{MASK}{found[5]}"


def _bare(found: re.Match[str]) -> str:
    word, value = found[2].lower(), found[3]
    rest = ""
    if not word.isascii():
        # No blank need stand between the secret and what follows it in these scripts.
        rest = found[3].lstrip(_ASCII)
        value = found[3].removesuffix(rest)
        if len(value) < 6:
            return found[0]
    if not _has_digit(value) or _ordinary(value) or "`" in value:
        return found[0]
    # ``token: 128000`` is a count and ``password = password1`` a variable.
    if (word == "token" and _NUMBER.fullmatch(value)) or value.lower().startswith(word):
        return found[0]
    return f"{found[1]}{MASK}{rest}"


def _foreign(word: str, value: str) -> bool:
    """Whether a value beside a word of another script is prose: a secret is written in ASCII."""
    return not word.isascii() and not value.isascii()


def _env_line(found: re.Match[str]) -> str:
    if not is_secret_name(found[2]) or _ordinary(found[4]):
        return found[0]
    return f"{found[1]}{found[3]}{MASK}{found[5]}"
