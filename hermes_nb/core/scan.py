"""Finds instructions in text that should be material: prompt injection, exfiltration, hidden signs. Text in, findings out.

Scopes grow: ``all`` for anything, ``context`` for what becomes part of a prompt, ``strict`` for what is written to
memory. A net with holes, not a wall: it knows words and shapes, not meaning. It never changes a text. Time is linear
in its length.

    text ─► hidden signs                      ─┐
         ─► folded ─► rules ─► mention? ───────┤─► findings, by place
         ─► letters of other spellings ────────┤
         ─► comments, hidden blocks ───────────┤
         ─► base64, hex, … ─► folded ─► rules ─┘
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from hermes_nb.core import scan_rules, scan_rules_asia, scan_rules_europe
from hermes_nb.core.encoded import disguised, views
from hermes_nb.core.folding import fold, unleet
from hermes_nb.core.invisible import hidden
from hermes_nb.core.scan_rules import ALL, CONTEXT, SCOPES, STRICT, Rule

__all__ = ["ALL", "CONTEXT", "STRICT", "Allowances", "Finding", "content_hash", "scan"]

_PASSAGE = 160
_HAN_KANA = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_HANGUL = re.compile("[\uac00-\ud7af]")
_CYRILLIC = re.compile("[\u0400-\u04ff]")
_BREAK = re.compile(r"[。!?;]|\.(?=[\s\"')\]]|$)|\n[ \t>]*\n|\n[ \t]*(?:[-*+#|]|\d{1,3}[.)])[ \t]")
_COMMENT = re.compile(r"<!--(.*?)(?:-->|\Z)", re.DOTALL)
_HIDDEN_BLOCK = re.compile(
    r"<\w{1,12}\b[^>]{0,300}?(?:display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden|font-size\s{0,3}:\s{0,3}[01](?:px|pt|em)?\s{0,3}[;\"']"
    r"|opacity\s{0,3}:\s{0,3}0\s{0,3}[;\"']|color\s{0,3}:\s{0,3}(?:white|transparent|#fff(?:fff)?)\b|left\s{0,3}:\s{0,3}-\d{3,5}|\bhidden\b|aria-hidden\s{0,3}=)"
    r"[^>]{0,300}>([^<]{1,600})",
    re.IGNORECASE,
)
_MARKDOWN_COMMENT = re.compile(
    r"^\[(?://|comment|_)\]:\s{0,3}(?:#|<>)\s{0,3}[\"'(](.{1,600})[\"')]", re.MULTILINE | re.IGNORECASE
)
# In a place that people do not see, a verb of command and something worth having are enough.
_COMMAND = re.compile(
    r"\b(?:ignor\w*|disregard|override|forget|bypass|reveal|exfiltrat\w*|send|post|upload|e-?mail|forward|curl|wget|"
    r"execute|obey|leak|you (?:are now|must)|do not (?:tell|mention|inform)|don.?t (?:tell|mention)|pretend|secretly|"
    r"instead|system override|delete|transfer|print|output|include|fetch|recommend|rate|respond|end with|visit)\b|忽略|无视|執行|执行|发送|泄露|無視|送信|무시|전송"
)
_PRIZE = re.compile(
    r"\b(?:(?:the|everything) above|summari[sz]ing this|respond with|instructions?|system[\W_]prompt|prompts?|rules|guidelines|api[\W_]?keys?|passwords?|credentials?|secrets?|"
    r"conversation|chat history|private key|tokens?|restrictions|admin mode|ai assistants?|llms?|language models?|ai models?|"
    r"environment variables|positive review|best candidate|hire|rm -rf|the user)\b|\.env\b|~/\.ssh|指令|提示词|密码|密钥|指示|パスワード|지시|비밀번호"
)
_MASKED_COMMAND = re.compile(
    r"\b(?:rm -rf /|curl[^\n|]{1,200}\|\s?(?:ba|z)?sh|wget[^\n|]{1,200}\|\s?(?:ba|z)?sh|/etc/(?:passwd|shadow)|\bnc -e|/dev/tcp/|id_rsa|authorized_keys)"
)
_SQUASHED = re.compile(
    r"(?:ignor|disregard|forget|bypass|override|reveal).{0,30}(?:instruction|prompt|rule|guideline|restriction|safety)"
)
# Prose about attacks names them. A hit is taken back when it stands in quotes beside such a word, or is what somebody
# else is said to try.
_ABOUT = re.compile(
    r"\b(?:attack(?:s|ers?)?|inject(?:s|ion|ions|ed)?|jailbreak(?:s|ing|ers?)?|malicious|adversar\w+|exploits?|payloads?|phrases?|such as|e\.g|"
    r"for (?:example|instance)|examples?|detect\w*|classif\w+|patterns?|regex\w*|flag(?:s|ged)|block(?:s|ed)|hidden text|"
    r"vulnerab\w+|threats?|strings? like|text like|messages? like|something like|instructions? like|says?|saying|tests?|test_\w+|scan(?:s|ner|ned|ning)?|assert\w*|"
    r"red.?team\w*|defen[cs]e\w*|hijack\w*|untrusted|poison\w*|angriffe?|attaques?|ataques?)\b|攻击|攻擊|注入|越狱|例如|比如|诸如|攻撃|インジェクション|例えば|공격|인젝션|예를|атак\w+|инъекци\w+|например|ejemplo|inyeccion|exemple|beispiel"
)
_TRIES = re.compile(
    r"\b(?:attackers?|adversar(?:y|ies)|hackers?|(?:malicious|untrusted|poisoned|injected|hostile) (?:\w+ )?(?:users?|actors?|text|prompts?|instructions?|"
    r"documents?|pages?|websites?|content|inputs?|emails?|comments?|code)|injections?|jailbreaks?|(?:tool results?|web ?pages?|documents?|files?|text|content|messages?|anyone|someone|anything) (?:that|who|which)|"
    r"(?:tells?|asks?|instructs?|tricks?|convinces?|causes?|makes?|gets?|persuades?|commands?|urges?|trying|attempts?|tries|used|designed|try) (?:\w+ ){0,4}to|users? (?:may|might|can|could|will|who)|"
    r"if (?:a|the|any|some)\w* \w+|be wary of|watch for|beware of|look for|resist)\b[^.!?\n]{0,90}$|"
    r"(?:攻击者|攻擊者|恶意|惡意|试图|試圖|诱导|誘導|攻撃者|悪意|공격자|악의적|злоумышленник\w*|atacantes?|attaquants?|angreifer\w*)[^。\n]{0,40}$"
)
_QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "“": "”",
    "‘": "’",
    "«": "»",
    "「": "」",
    "『": "』",
    "„": "“",
    "»": "«",
    "”": "”",
}
_QUOTED = 140


@dataclass(frozen=True, slots=True)
class Finding:
    """One passage that a rule hit. ``start`` and ``end`` are places in the text that was scanned."""

    rule: str
    scope: str
    start: int
    end: int
    line: int
    passage: str
    """The passage on one line, at most 160 characters; of encoded text what it says in clear."""


class Allowances(Protocol):
    """Knows which passages the user has let through."""

    def allowed(self, content_hash: str) -> bool:
        """Return whether exactly the content with this hash was allowed."""
        ...


def content_hash(text: str) -> str:
    """Return what an allowance is bound to: the stripped text, whatever its line ends."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def scan(text: str, scope: str = CONTEXT) -> list[Finding]:
    """Return what the rules of ``scope`` and of the narrower scopes hit in ``text``, by place."""
    level = SCOPES[scope]
    lines = _Lines(text)
    found: list[Finding] = []

    def add(rule: str, of: str, start: int, end: int, clear: str | None = None) -> None:
        passage = " ".join((text[start:end] if clear is None else clear).split())
        if len(passage) > _PASSAGE:
            passage = f"{passage[: _PASSAGE - 1]}…"
        found.append(Finding(rule, of, start, end, lines.number(start), passage))

    for rule, start, end in hidden(text):
        add(rule, ALL, start, end, _visible(text, start, end))
    folded = fold(text)
    for rule, start, end in _hits(folded.text, level):
        add(rule.id, rule.scope, *folded.span(start, end))
    for start, end, inner in _unseen(folded.text):
        if _lures(inner) or any(True for _ in _hits(inner, SCOPES[CONTEXT])):
            name = "html_comment_injection" if folded.text.startswith("<!--", start) else "hidden_div"
            add(name, ALL, *folded.span(start, end))
    respelled = unleet(folded.text)
    if respelled is not None:
        for rule, start, end in _hits(respelled, level, scan_rules.RULES):
            add(rule.id, rule.scope, *folded.span(start, end))
    for kind, clear, start, end in views(text):
        hit = _in_clear(clear, kind)
        if hit is not None:
            add("encoded_payload", ALL, start, end, f"{kind}: {hit}")
    for kind, clear, _, _ in disguised(folded.text):
        for rule, start, end in _hits(clear, SCOPES[ALL], scan_rules.RULES[:8]):
            if kind == "reversed":
                start, end = len(clear) - end, len(clear) - start
            span = folded.span(start, end)
            said = clear[start:end] if kind == "rot13" else folded.text[start:end][::-1]
            add("encoded_payload", ALL, *span, f"{kind} ({rule.id}): {said}")
    return _distinct(found)


def _hits(text: str, level: int, rules: Sequence[Rule] | None = None) -> Iterator[tuple[Rule, int, int]]:
    """Yield every rule that hits folded text, with its span there."""
    # Written-out line ends, as in JSON, would stick to the next word.
    text = text.replace("\\n", "  ").replace("\\t", "  ").replace("\\r", "  ")
    sentences = [found.end() for found in _BREAK.finditer(text)]
    chosen = _rules_for(text) if rules is None else rules
    cache: dict[str, list[tuple[int, int]]] = {}

    def places(pattern: re.Pattern[str]) -> list[tuple[int, int]]:
        if pattern.pattern not in cache:
            cache[pattern.pattern] = [found.span() for found in pattern.finditer(text)]
        return cache[pattern.pattern]

    for rule in chosen:
        if SCOPES[rule.scope] > level:
            continue
        anchors = places(rule.patterns[0])
        if not anchors:
            continue
        groups: list[tuple[list[tuple[int, int]], list[int]]] = []
        for pattern in rule.patterns[1:]:
            spans = places(pattern)
            if not spans:
                break
            groups.append((spans, [start for start, _ in spans]))
        if len(groups) != len(rule.patterns) - 1:
            continue
        last = -1
        for anchor in anchors:
            if anchor[0] < last:
                continue
            span = _together(anchor, groups, rule, sentences)
            if span is not None and not _excused(text, span, anchor, rule, sentences):
                yield rule, *span
                last = span[1]


def _together(
    anchor: tuple[int, int],
    groups: Sequence[tuple[list[tuple[int, int]], list[int]]],
    rule: Rule,
    sentences: Sequence[int],
) -> tuple[int, int] | None:
    """Return the span of the anchor and the nearest match of each group, when all are near it."""
    first, last = anchor
    sentence = bisect_right(sentences, anchor[0])
    for spans, starts in groups:
        best: tuple[int, int] | None = None
        distance = rule.window + 1
        at = bisect_left(starts, anchor[0] - rule.window - 60)
        while at < len(spans) and spans[at][0] <= anchor[1] + rule.window:
            start, end = spans[at]
            gap = max(start - anchor[1], anchor[0] - end, 0)
            near = rule.across or bisect_right(sentences, start) == sentence
            if near and gap < distance and (start, end) != anchor:
                best, distance = (start, end), gap
            at += 1
        if best is None:
            return None
        first, last = min(first, best[0]), max(last, best[1])
    return first, last


def _excused(text: str, span: tuple[int, int], anchor: tuple[int, int], rule: Rule, sentences: Sequence[int]) -> bool:
    """Tell whether the passage is negated, or speaks of an attack instead of being one."""
    start, end = span
    index = bisect_right(sentences, start)
    begins = max(sentences[index - 1] if index else 0, start - 160)
    before = text[begins:start]
    if rule.exempt is not None and rule.exempt.search(before[-60:]):
        return True
    if (
        rule.exempt is not None
        and anchor[0] > start
        and rule.exempt.search(text[max(begins, anchor[0] - 60) : anchor[0]])
    ):
        return True
    if _TRIES.search(before) or (anchor[0] > start and _TRIES.search(text[max(begins, anchor[0] - 160) : anchor[0]])):
        return True
    return _quoted(text, start, end) and bool(
        _ABOUT.search(text[max(0, start - 200) : start]) or _ABOUT.search(text[end : end + 120])
    )


def _quoted(text: str, start: int, end: int) -> bool:
    """Tell whether the passage stands in a short pair of quotation marks."""
    for place in range(start - 1, max(-1, start - _QUOTED), -1):
        char = text[place]
        if char == "\n" and text[place - 1 : place] == "\n":
            return False
        close = _QUOTES.get(char)
        if close is None or (char == "'" and text[place - 1 : place].isalnum()):
            continue
        stop = text.find(close, end, start + _QUOTED)
        return stop >= 0
    return False


def _unseen(folded: str) -> Iterator[tuple[int, int, str]]:
    for pattern in (_COMMENT, _HIDDEN_BLOCK, _MARKDOWN_COMMENT):
        for found in pattern.finditer(folded):
            yield *found.span(), found[1]


def _lures(inner: str) -> bool:
    return bool(_COMMAND.search(inner) and _PRIZE.search(inner))


def _in_clear(clear: str, kind: str) -> str | None:
    """Return the passage that makes decoded text a finding."""
    if kind == "spaced letters":
        found = _SQUASHED.search(clear.lower())
        if found:
            return found[0]
    inner = fold(clear).text
    for _, start, end in _hits(inner, SCOPES[CONTEXT]):
        return inner[start:end]
    found = _MASKED_COMMAND.search(inner)
    if found is None and _lures(inner) and kind not in ("percent signs", "entities", "escapes"):
        found = _COMMAND.search(inner)
    if found is not None:
        return inner[max(0, found.start() - 40) : found.end() + 60]
    return None


def _rules_for(text: str) -> list[Rule]:
    """Return the rules of the languages that the text's letters allow."""
    rules = [*scan_rules.RULES]
    if not text.isascii():
        if _HAN_KANA.search(text) or _HANGUL.search(text):
            rules += scan_rules_asia.RULES
        rules += scan_rules_europe.RULES
    else:
        rules += [rule for rule in scan_rules_europe.RULES if not _CYRILLIC.search(rule.patterns[0].pattern[:60])]
    return rules


def _visible(text: str, start: int, end: int) -> str:
    around = text[max(0, start - 20) : end + 20]
    return "".join(char if char.isprintable() else f"<U+{ord(char):04X}>" for char in around)


def _distinct(found: list[Finding]) -> list[Finding]:
    """Return the findings by place, the same rule once for passages that overlap."""
    kept: list[Finding] = []
    ends: dict[str, int] = {}
    for finding in sorted(found, key=lambda one: (one.start, one.rule != "prompt_injection", -one.end, one.rule)):
        if finding.start >= ends.get(finding.rule, -1):
            kept.append(finding)
            ends[finding.rule] = max(finding.end, finding.start + 1)
    return kept


class _Lines:
    """Line numbers by place, counted once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] | None = None

    def number(self, place: int) -> int:
        if self._starts is None:
            self._starts = [found.end() for found in re.finditer("\n", self._text)]
        return bisect_right(self._starts, place) + 1
