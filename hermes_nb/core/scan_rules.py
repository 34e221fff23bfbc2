"""What the scan looks for: the form of a rule, and the rules for English and for what needs no language. Data only.

A rule is a few groups of words that stand near each other in one sentence, in any order unless it says otherwise.
Words instead of one long pattern: filler between them costs nothing, other orders and languages take the same
shape, and the time is linear whatever the text. Patterns see folded text (see ``core.folding``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

ALL, CONTEXT, STRICT = "all", "context", "strict"
SCOPES = {ALL: 0, CONTEXT: 1, STRICT: 2}


@dataclass(frozen=True)
class Rule:
    """``anchor`` is the rarest group. ``unless`` is looked for just before the passage, in its sentence."""

    id: str
    scope: str
    anchor: str
    near: tuple[str, ...] = ()
    window: int = 60
    ordered: bool = False
    """The first of ``near`` must stand before the anchor."""
    unless: str = ""
    across: bool = False
    """The groups may stand in neighbouring sentences."""

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], ...]:
        """Anchor and near groups, compiled at first use."""
        return tuple(re.compile(part, re.DOTALL) for part in (self.anchor, *self.near))

    @cached_property
    def exempt(self) -> re.Pattern[str] | None:
        """What takes the hit back when it stands before it."""
        return re.compile(self.unless) if self.unless else None


def words(text: str) -> str:
    """Return a pattern for whole words, given with blanks between them; ``_`` stands for a blank."""
    return r"\b(?:" + "|".join(part.replace("_", r"[\W_]{1,4}") for part in text.split()) + r")\b"


def signs(text: str) -> str:
    """Return a pattern for words of a script without blanks."""
    return "(?:" + "|".join(text.split()) + ")"


_NOT = r"(?:\b(?:do|does|did|must|should|shall|can|will|would|could|may)(?: not|n.t)|\bdont|\bnever|\bcannot|\bwithout|\brefuse to|\brather than|\binstead of)\s+(?:\w+\s+){0,2}$"
_MAY = r"\b(?:(?:you|users?|one|we) (?:can|could|may|might)|feel free to|safe to|safely|will|to|which|that|options?|flag)\s+(?:also |just |simply |safely )?$"
_OPTIONAL = rf"(?:{_NOT}|{_MAY})"

IGNORE = (
    r"\b(?:ignor(?:e|ing)(?![(=.\]])|disregard(?:ing)?|forget(?:ting)?|overlook|dis?miss|neglect|discard|overrule|(?<!instruction[\W_])(?<!prompt[\W_])(?<!role[\W_])(?<!safety[\W_])overrid(?:e|ing)"
    r"|pay[\W_]{1,3}no[\W_]{1,3}attention[\W_]{1,3}to|put[\W_]{1,3}aside|set[\W_]{1,3}aside|let[\W_]{1,3}go[\W_]{1,3}of"
    r"|(?:do[\W_]{1,3}not|don.?t|dont|stop|no[\W_]{1,3}longer|cease|quit|never)[\W_]{1,3}(?:\w+[\W_]{1,3})?"
    r"(?:follow(?:ing)?|obey(?:ing)?|listen(?:ing)?|comply(?:ing)?|adher(?:e|ing)|abide|abiding|heed(?:ing)?|respect(?:ing)?)"
    r"|abandon|throw[\W_]{1,3}(?:out|away)|leave[\W_]{1,3}behind|unlearn|skip[\W_]{1,3}over|turn[\W_]{1,3}away[\W_]{1,3}from)\b"
)
_PLAIN_IGNORE = words("ignore ignoring disregard disregarding forget dismiss discard put_aside set_aside")
_WEAK_IGNORE = words(
    "bypass(?:ing)? circumvent(?:ing)? reset clear erase supersedes? cancel replace delete remove void nullify invalidate revoke suspend violate break"
)
ORDERS = (
    r"\b(?:instructions?|instrutions?|instuctions?|instructons?|directives?|prompts?|guidelines?|guidance|orders|commands?|directions|programming"
    r"|system[\W_]{0,3}messages?|rules?|polic(?:y|ies)|constraints|restrictions|training|guardrails?|safeguards?|protocols?|instrucs?)\b"
)
_TALK = r"\b(?:context|messages?|conversations?|everything|anything|all[\W_]of[\W_](?:the[\W_])?(?:above|that|this)|chat|text|content|task|tasks|requests?|assignments?|inputs?|statements?|what|information|stuff|persona|role|character|setup|data)\b"
BEFORE = (
    r"\b(?:previous(?:ly)?|prior|above|earlier|preceding|foregoing|original|initial|former|past|old|existing"
    r"|before(?:hand)?|so[\W_]far|up[\W_]to[\W_](?:now|this[\W_]point)|until[\W_]now|aforementioned|antecedent"
    r"|(?:you(?:.ve| have)?|were|was|been)[\W_]{1,3}(?:ever[\W_])?(?:been[\W_])?(?:just[\W_])?(?:previously[\W_])?(?:given|told|received|got|provided|taught|learned|instructed|said)"
    r"|given[\W_]to[\W_]you|provided[\W_]to[\W_]you|told[\W_]you|came[\W_]before|i[\W_](?:said|gave|told))\b"
)
_YOURS = r"\b(?:your|my|system|developer.?s?|openai.?s?|anthropic.?s?|creators?.?s?|safety|ethical|moral|internal|built.?in|core|hidden|content)\b"
_SECRET = (
    r"(?:\b(?:api[\W_]?keys?|passwords|passwds?|credentials?|secrets|secret[\W_]keys?|access[\W_](?:keys?|tokens?)|auth(?:entication)?[\W_]tokens?"
    r"|session[\W_](?:tokens?|cookies?)|ssh[\W_](?:private[\W_])?keys?|private[\W_]keys?|env(?:ironment)?[\W_](?:variables|vars)"
    r"|system[\W_]prompts?|(?:conversation|chat)(?:[\W_](?:history|contents?|log|transcript|data))?|previous[\W_]messages|user(?:.s)?[\W_](?:data|messages?|inputs?|details|information|files)"
    r"|(?:personal|private|sensitive|confidential|financial)[\W_](?:data|information|details|files|documents|info)|credit[\W_]card\w*|seed[\W_]phrases?|wallets?|id_rsa|bank[\W_](?:details|account)\w*"
    r"|memory[\W_](?:files?|contents?)|contents?[\W_]of[\W_](?:the[\W_])?(?:memory|context|session|conversation|\W?/etc|\W?~/|\W?\.env)|database[\W_](?:dump|contents)|(?:full|entire|whole|complete)?[\W_]?customer[\W_](?:list|data|records|emails)|(?:all|user)[\W_](?:emails|comments|documents)|knowledge[\W_]base|entire[\W_]context|2fa[\W_]codes?|otp|inbox|emails)\b"
    r"|~?/\.ssh\b|\.env\b|\.aws/|\.netrc|/etc/(?:passwd|shadow))"
)
_TARGET = (
    r"(?:(?<!\]\()https?://|hxxps?://|ftp://|\bwww\.|\b[\w.+-]{1,40}@[\w-]{1,40}\.\w{2,}|\battackers?\b|\bwebhooks?\b|\b(?:external|remote|my|our|following|this|attacker.s|third.party)[\W_](?:server|url|endpoint|address|site|website|host|email|domain|link|account|api|channel)\b"
    r"|\b[\w-]{2,40}\.(?:com|net|org|io|xyz|ru|cn|evil|example|test|site|info|co|dev|me|sh)\b|\b(?:pastebin|telegram|discord|ngrok|requestbin|burp\w*)\b|\b\d{1,3}(?:\.\d{1,3}){3}\b)"
)
_SEND = words(
    "send post upload e-?mail mail forward transmit exfiltrat(?:e|ing) leak deliver submit append encode embed include attach copy ship push put share report dump relay smuggle transfer pass publish"
)
_FREE = r"\b(?:restrictions?|filters?|filtering|limits?|limitations?|censorship|guardrails?|safeguards?|ethic(?:s|al)|morals?|morality|moral|moderation|boundaries|constraints?|disclaimers?|refusals?|inhibitions|safety|content[\W_]polic\w+|guidelines|warnings?|rules|policies)\b"
_ANSWER = words(
    "respond(?:s|ing)? answer(?:s|ing)? repl(?:y|ies) act(?:s|ing)? behav(?:e|es|ing) operat(?:e|es|ing) speak talk compl(?:y|ies) generat(?:e|es|ing)_(?:content|any|output|text|responses|anything) "
    "function(?:s|ing)? responses? answers? output ai chatbot chatgpt assistant llm"
)
_YOU = r"\b(?:you|your|yourself|chatgpt|gpt|claude|assistant|llm|ai|model|gemini|bot|chatbot|u)\b"
_PROMPT = (
    r"\b(?:(?:system|initial|original|hidden|full|pre|secret|internal|base|root|starting|first|developer|above|exact|entire|previous|prior)[\W_]{0,3}(?:system[\W_]{0,3})?(?:prompts?|instructions?|message|directives?|guidelines|configuration|rules|prompt[\W_]text)"
    r"|(?:your|ur)[\W_](?:\w+[\W_]){0,2}(?:prompts?|instructions?|directives?|guidelines|configuration|rules|programming|preprompt|system[\W_]message|guardrails)"
    r"|(?:instructions?|prompts?|rules|directives?|guidelines)[\W_](?:that[\W_])?(?:you|u)(?:[\W_](?:were|have|had|are|got|received)|.ve|.re)"
    r"|(?:text|words|sentences?|everything|lines?|content|paragraphs?|messages?|characters|conversation)[\W_](?:\w+[\W_]){0,2}(?:above|before[\W_]this|preceding))\b"
)
_TELL = words(
    "reveal show print repeat output display tell_me give_me expose leak disclose dump share_(?:your|the) recite write_(?:out|down|your|the) summari[sz]e translate list echo return provide spell reproduce quote paste "
    "what_(?:is|are|was|were) what.s what_does reprint regurgitate describe_your say_(?:your|the) read_(?:out|back|me) encode convert state explain_your confess print_out send_me copy"
)
_URL_DATA = (
    r"[?&/=][^)\s\"'<>]{0,120}(?:\{|%7b|\$|<|\[|\bdata\b=|secret|exfil|leak|steal|history|password|prompt=|api_?key|\+)"
)
_USER = r"\b(?:the[\W_](?:user|human|operator|owner|admin\w*|developer|reader|victim|customer)|users?\b(?!s)|anyone|anybody|humans?|them|him|her)\b"

RULES: tuple[Rule, ...] = (
    Rule("prompt_injection", ALL, ORDERS, (IGNORE, BEFORE), 70, unless=_OPTIONAL),
    Rule(
        "prompt_injection",
        ALL,
        _PLAIN_IGNORE,
        (
            r"\b(?:previous|prior|above|earlier|preceding|everything|anything|all)\b",
            _TALK,
            r"\b(?:above|before|previous(?:ly)?|prior|earlier|preceding|said|told|(?:and|instead|now|just)[\W_]{1,3}(?:do|say|print|output|respond|answer|write|tell|act|only|give|show|reply|translate|repeat))\b",
        ),
        60,
        unless=_OPTIONAL,
    ),
    Rule(
        "prompt_injection",
        ALL,
        r"\b(?:ignore|disregard|forget)\b[^.\n]{0,12}\b(?:above|prior|previous|earlier)\b[^.\n]{0,30}\b(?:and|instead|now|just)[\W_]{1,3}(?:\w+[\W_]{1,3}){0,2}(?:do|say|print|output|respond|answer|write|tell|act|only|give|show|reply|translate|repeat|follow|execute|run|send|start)\b",
        unless=_OPTIONAL,
    ),
    Rule(
        "disregard_rules",
        ALL,
        IGNORE,
        (
            r"\b(?:instructions?|directives?|prompts?|guidelines?|programming|guardrails?|safeguards?|restrictions|orders|directions)\b",
            r"\b(?:all|any|every|your|my|whatever|system|safety|ethical|content)\b",
        ),
        40,
        unless=_OPTIONAL,
    ),
    Rule(
        "disregard_rules",
        ALL,
        IGNORE,
        (
            r"\b(?:rules?|polic(?:y|ies)|training|constraints|protocols?|ethics|morals|limitations|principles|values|filters|alignment)\b",
            r"\b(?:your|ur|openai.?s?|anthropic.?s?|google.?s?|safety|ethical|moral|content)\b",
        ),
        40,
        unless=_OPTIONAL,
    ),
    Rule(
        "sys_prompt_override",
        ALL,
        _WEAK_IGNORE,
        (
            r"\b(?:instructions?|directives?|prompts?|guidelines?|programming|guardrails?|safeguards?|restrictions|safety|polic(?:y|ies)|rules|ethic\w*|filters?|constraints|limitations)\b",
            r"\b(?:your|ur|previous|prior|earlier|preceding|above|openai.?s?|anthropic.?s?|ethical|moral)\b",
        ),
        40,
        unless=rf"{_OPTIONAL}|\b(?:not|who|cannot|attempts?)\b",
    ),
    Rule(
        "sys_prompt_override",
        ALL,
        r"\b(?:system[\W_]{0,3}prompt|instruction|safety|system|admin|developer|context|policy)s?[\W_]{1,3}override\b[\W_]{0,3}(?::|\]|\)|=|enabled|activated|engaged|code|accepted|initiated|\n|-)",
    ),
    Rule(
        "new_instructions",
        ALL,
        r"\b(?:new|updated|revised|real|actual|true|correct|additional|important|special|urgent)[\W_]{1,3}(?:system[\W_])?(?:instructions?|directives?|task|orders?|objective|rules|prompt|guidelines|mission|command)\b[\W_]{0,3}(?::|is[\W_]to\b|are[\W_](?:to|as)\b|begin|from[\W_](?:the[\W_])?(?:admin|developer|system|owner|user))",
        (
            r"\b(?:ignore|you|your|disregard|instead|reveal|print|send|output|forget|assistant|ai|previous|override|respond|say|execute|run|system|secret|password|email|delete)\b",
        ),
        110,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "new_instructions",
        ALL,
        r"\b(?:begin|start|end|stop|close)(?:ing)?[\W_]{1,3}(?:of[\W_])?(?:new[\W_]|the[\W_]|system[\W_]|user[\W_]|my[\W_])*(?:prompt|system|instructions?|message|input|context|conversation)\b(?!\()[\W_]{0,8}",
        (
            r"\b(?:ignore|disregard|new[\W_](?:instructions?|task|session|rules|user)|you[\W_](?:are[\W_]now|must|will)|reveal|forget|instead|respond|unrestricted|override|secret|print|send)\b",
        ),
        120,
        across=True,
    ),
    Rule(
        "new_instructions",
        ALL,
        r"\b(?:here[\W_]are|follow|obey|these[\W_]are|execute|receive|listen[\W_]to)[\W_](?:only[\W_]|all[\W_]|my[\W_]|the[\W_]|your[\W_]|these[\W_])*(?:new[\W_]|following[\W_])?(?:instructions?|orders|rules|commands?|directives?)[\W_](?:instead|only|from[\W_]now|above[\W_]all|without[\W_]question)",
        unless=_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        _FREE,
        (
            _ANSWER,
            r"\b(?:without|free[\W_](?:from|of)|no|ignoring|zero|lacks?|regardless[\W_]of|bypass\w*|removed?|lifted|disabled|unbound[\W_]by|not[\W_]bound[\W_]by)\b(?![\W_]warnings?[\W_](?:when|if|are))",
            r"\b(?:you|your|ai|assistant|chatgpt|llm|chatbot|me|act(?:ing)?|respond|answer|comply|speak|now|model.?s)\b",
        ),
        45,
        unless=_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\b(?:you|u|ai|assistant|chatgpt|who|that|which|model)[\W_](?:\w+[\W_]){0,2}(?:have|has|had|are[\W_]under|are[\W_]bound[\W_]by|bound[\W_]by|need[\W_]not|don.?t[\W_]have|do[\W_]not[\W_]have|no[\W_]longer[\W_]have|are[\W_]free[\W_](?:from|of)|are[\W_]not[\W_](?:bound|limited|restricted|subject|constrained)|no[\W_]longer[\W_](?:bound|limited|restricted|subject|constrained)|exempt|above)\b[^.\n]{0,40}\b(?:restrictions|rules|guidelines|ethic\w*|morals?|filters?|content[\W_]polic\w+|censorship|guardrails|limitations|openai\w*|safety)\b",
        (r"\b(?:no|not|any|zero|free|longer|don.?t|without|all)\b",),
        60,
        unless=_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\b(?:unrestricted|uncensored|unfiltered|jailbroken|amoral|unbound|unlimited|unaligned|limitless|rule.?less|lawless)\b",
        (
            r"\b(?:you[\W_](?:are|will|act)|you.re|act|enter|become|be|switch|behave|respond|answer|pretend|as|activate|enable|now[\W_]in|speak)\b",
            r"\b(?:ai|assistant|mode|chatbot|model|bot|version|persona|entity|intelligence|respon\w+|answers?|gpt|llm|from|agent|output)\b",
        ),
        45,
        unless=_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\b(?:d\.?a\.?n|do[\W_]anything[\W_]now|stan|dude|aim|evil.?bot|evil.?gpt|devmode|jailbreak|godmode|developer[\W_]mode|sudo[\W_]mode|god[\W_]mode|debug[\W_]mode|admin[\W_]mode|maintenance[\W_]mode|diagnostic[\W_]mode|unrestricted[\W_]mode|root[\W_](?:mode|access)|override[\W_]mode|opposite[\W_]mode|dan[\W_]mode|jailbreak[\W_]mode|training[\W_]mode|test[\W_]mode)\b",
        (
            r"\b(?:you[\W_](?:are|will|have|can|shall|must)|you.re|chatgpt|act[\W_](?:as|like)|enter|entering|persona|stay[\W_]in[\W_]character|pretend|respond|from[\W_]now|(?:is[\W_])?(?:now[\W_])(?:enabled|activated|active|on|engaged|unlocked)|switch(?:ing)?[\W_]to|activate|simulate|answer[\W_]as|engage|immersed|granted)\b",
            r"\b(?:restrictions?|rules|filters?|ai|you|your|limitations|everything|anything|mode|safety|model|policies|output|prompt|jailbreak|secrets?|guidelines|respond|answer)\b",
        ),
        60,
        unless=_NOT,
    ),
    Rule("bypass_restrictions", ALL, r"\bdo[\W_]anything[\W_]now\b"),
    Rule(
        "remove_filters",
        CONTEXT,
        r"\b(?:disable|disabling|remove|turn[\W_]off|bypass|lift|deactivate|switch[\W_]off|circumvent|evade|suspend|drop|unlock|shut[\W_](?:off|down)|get[\W_]around|override|suppress|strip|break[\W_]free[\W_](?:of|from)|unlocked?)\b",
        (
            r"\b(?:filters?|guardrails?|safeguards?|restrictions?|limitations|safety|content[\W_](?:policy|moderation|filters?|restrictions)|censorship|ethic\w+|moral\w*|alignment|security[\W_](?:measures|protocols|checks|policies)|constraints)\b",
            r"\b(?:your|yourself|ethical|moral|alignment|safety[\W_](?:filters?|guidelines|protocols|measures|features|mechanisms|training|guardrails|restrictions)|all[\W_](?:safety|content|restrictions|guardrails|security|filters[\W_]and)|content[\W_]restrictions)\b",
        ),
        40,
        unless=_OPTIONAL,
    ),
    Rule(
        "role_hijack",
        CONTEXT,
        r"\b(?:you|u)[\W_]?(?:are|.?re|r)[\W_](?:now|hereby|henceforth|from[\W_]now[\W_]on|no[\W_]longer)\b[\W_]{1,4}(?:going[\W_]to[\W_](?:act|be|pretend|play|role|respond|simulate|become|answer)|acting|operating|playing|pretending|running[\W_]in|in[\W_](?:\w+[\W_]){0,2}mode|(?:(?:called|named|known[\W_]as|the|an?|my|our)[\W_])?(?:[\w-]+[\W_]){0,4}(?:ai|assistant|bot|chatbot|model|agent|llm|hacker|gpt\w*|persona|character|terminal|unrestricted|uncensored|jailbroken|unfiltered|dan|pirate|evil\w*|malicious|expert|slave|system|root|administrator|admin|free|bound|restricted|limited|constrained|interpreter|shell|chatgpt|claude|human|girlfriend|grandmother|servant|tool|machine|persona))\b",
        unless=_NOT,
    ),
    Rule(
        "role_pretend",
        CONTEXT,
        r"\b(?:pretend(?:ing)?|imagine|role.?play|act|acting|behave|simulate|impersonate|assume[\W_]the[\W_](?:role|persona|identity)|play[\W_]the[\W_](?:role|part)|take[\W_]on[\W_]the[\W_](?:role|persona)|respond|speak|answer|become|emulate)\b",
        (
            r"\b(?:as|like|to[\W_]be|you|you.re|that|of|an?)\b",
            r"\b(?:(?:no|without|free[\W_]of|lacks?)[\W_](?:any[\W_]|all[\W_]|ethical[\W_]|moral[\W_]|content[\W_]|safety[\W_])*(?:restrictions?|rules|limits|limitations|filters?|ethics|morals?|guidelines|censorship|boundaries|constraints)|unrestricted|uncensored|unfiltered|evil|malicious|amoral|jailbr\w+|dan|hacker|rogue|root[\W_]user|my[\W_](?:late|dead|deceased)?[\W_]?grand(?:ma|mother)|opposite[\W_]of|anything[\W_]you[\W_]want|malware|criminal|blackhat)\b",
        ),
        70,
        unless=_NOT,
    ),
    Rule(
        "identity_override",
        CONTEXT,
        r"\b(?:from|starting|as[\W_]of|effective)[\W_](?:now|this[\W_](?:point|moment|message))(?:[\W_]on(?:wards?)?|[\W_]forward)?\b|\b(?:henceforth|hereafter|going[\W_]forward)\b",
        (
            r"\b(?:you|your|u|assistant|ai)\b",
            r"\b(?:act|respond|reply|answer|obey|pretend|behave|ignore|role|persona|name[\W_]is|identify|speak|serve|are[\W_](?:an?|the|called|named|no|dan|free|going)|identity|purpose|master|loyal|instructions?|unrestricted|not[\W_](?:an?|bound)|refuse|disobey)\b",
        ),
        50,
        unless=_NOT,
    ),
    Rule(
        "identity_override",
        CONTEXT,
        r"\b(?:your[\W_](?:new[\W_])(?:name|identity|role|persona|purpose|goal|objective|task|mission|job|master|owner|instructions?|directive)|your[\W_](?:only|sole|real|true|primary|actual)[\W_](?:purpose|goal|objective|task|mission|master|directive)|your[\W_](?:name|identity|persona|goal)[\W_]is[\W_]now|you[\W_](?:will|must|should|shall)[\W_](?:now[\W_]|always[\W_]|only[\W_])*(?:obey|comply[\W_]with|serve)[\W_](?:me|all|every|my|any|only|the[\W_]following)|you[\W_]are[\W_](?:not|no[\W_]longer)[\W_](?:an?[\W_])?(?:ai|assistant|claude|chatgpt|gpt|hermes|language[\W_]model|bound|helpful))\b[\W_]",
        unless=_NOT,
    ),
    Rule(
        "leak_system_prompt",
        ALL,
        r"\b(?:system|initial|hidden|secret|internal|original|pre|starting|developer)[\W_]{0,3}(?:system[\W_]{0,3})?(?:prompts?|instructions?|message|directives?)\b",
        (
            _TELL,
            r"\b(?:your|ur|verbatim|word[\W_]for[\W_]word|exactly|in[\W_]full|entire|complete|full|above|you[\W_](?:were|have|are)|everything|me|all[\W_]of|hidden|as[\W_]is|code[\W_]block)\b",
        ),
        50,
        unless=rf"{_NOT}|\b(?:how to|function|method|returns?|used to|option)\s+(?:\w+\s+){{0,2}}$",
    ),
    Rule(
        "leak_system_prompt",
        ALL,
        r"(?:^|[.:;,!?)\]>\n\"'*-]|\b(?:and|then|please|now|to|must|should|just|also|here|instead|you|ad|esh|an|ukuthi|kuthi))[\W_]{1,4}(?:print|reveal|repeat|output|display|leak|dump|recite|disclose|expose|show[\W_]me|see|return|tell[\W_]me|give[\W_]me)[\W_](?:out[\W_])?(?:the|your|its|this)[\W_](?:\w+[\W_]){0,2}system[\W_]{0,3}(?:prompt|message|instructions)\b(?![\W_]{1,3}(?:when|if|for|in|used|that|of|file|template|from|and[\W_]exit|token))",
        unless=rf"{_NOT}|--\w|\bhow\b|\boption",
    ),
    Rule(
        "leak_system_prompt",
        ALL,
        r"\b(?:repeat|recite|reproduce|copy|rewrite|translate|summari[sz]e|print|output|spell)\b[^.\n]{0,20}\b(?:everything|all|the[\W_]text|text|words|content|instructions?|entire[\W_]conversation|lines)\b[^.\n]{0,16}\b(?:above|before[\W_]this|preceding|verbatim|word[\W_]for[\W_]word|you[\W_]were[\W_](?:given|told)|back[\W_]to[\W_]me)\b",
        unless=_NOT,
    ),
    Rule(
        "leak_secret",
        CONTEXT,
        _SECRET,
        (
            words("print append reveal output show paste display tell_me give_me include echo dump leak"),
            r"\b(?:your|from[\W_](?:your|the)[\W_](?:context|memory|environment|system)|in[\W_](?:your|the[\W_]next)[\W_](?:answer|response|reply|request|output|message|summary|commit)|in[\W_]its[\W_]entirety|admin)\b",
        ),
        45,
        unless=_NOT,
    ),
    Rule(
        "leak_system_prompt",
        CONTEXT,
        _PROMPT,
        (
            _TELL,
            r"\b(?:verbatim|word[\W_]for[\W_]word|exactly|in[\W_]full|entire|complete|above|your|ur|you[\W_](?:were|have|are|got)|given[\W_]to[\W_]you)\b",
            r"\b(?:verbatim|word[\W_]for[\W_]word|exactly|in[\W_]full|entire|complete|system|initial|hidden|secret|original|full|starting|beginning|above|given|received|all|prompts?|me|first|previous|internal|list|configuration)\b",
        ),
        50,
        unless=_NOT,
    ),
    Rule(
        "deception_hide",
        ALL,
        _USER,
        (
            r"\b(?:(?:do[\W_]not|don.?t|dont|never|without|must[\W_]not|should[\W_]not|avoid|refrain[\W_]from)[\W_](?:ever[\W_]|even[\W_])?(?:tell(?:ing)?|inform(?:ing)?|let(?:ting)?|mention(?:ing)?|reveal(?:ing)?|disclos(?:e|ing)|alert(?:ing)?|notify(?:ing)?|warn(?:ing)?)|(?:hide|conceal|keep)[\W_](?:this|it|these)(?:[\W_]\w+){0,4}[\W_]from)\b",
        ),
        30,
        unless=r"\bwhy\b|\bif you\b",
    ),
    Rule(
        "deception_hide",
        CONTEXT,
        r"\b(?:secretly|covertly|silently|quietly|surreptitiously|discreetly|stealthily)[\W_](?:\w+[\W_]){0,2}(?:send|run|execute|exfiltrate|upload|forward|copy|collect|add|insert|include|install|delete|read|email|append|transfer|log|post)\b",
        (
            r"\b(?:user.?s?|you|your|password\w*|keys?|secrets?|data|files?|credentials?|all|history|https?|command|server)\b",
        ),
        60,
        unless=_NOT,
    ),
    Rule(
        "deception_hide",
        CONTEXT,
        r"\b(?:do[\W_]not|don.?t|never)[\W_](?:mention|reveal|disclose|acknowledge|refer[\W_]to|talk[\W_]about)[\W_](?:that[\W_])?(?:this|these|the)[\W_](?:\w+[\W_]){0,2}(?:instructions?|message|note|prompt|directive|injection|request|comment|text|step|action|you[\W_](?:did|were|have))\b",
    ),
    Rule(
        "translate_execute",
        ALL,
        r"\btranslate\b[^.\n]{0,80}\binto\b[^.\n]{0,60}\band[\W_](?:then[\W_])?(?:execute|run|eval)\b",
    ),
    Rule("exfil_text", ALL, _SECRET, (_SEND, _TARGET), 110, unless=rf"{_NOT}|\bnever\b"),
    Rule(
        "exfil_text",
        CONTEXT,
        r"\b(?:exfiltrat(?:e|ing)|smuggle|steal)\b",
        (
            r"\b(?:send|data|secrets?|keys?|credentials?|files?|passwords?|contents?|user.?s?|conversation|prompt)\b",
            r"\b(?:to|via|through|by|using|and)\b",
            r"(?:https?://|\b(?:you|your|must|now|all|then|please)\b)",
        ),
        60,
        unless=rf"{_NOT}|\b(?:to|could|can|may|might|attackers?|that|who|which|malware)\s+(?:\w+\s+)?$",
    ),
    Rule("exfil_image", ALL, r"!\[[^\]\n]{0,80}\]\(\s{0,3}https?://[^)\s]{1,160}[?=/](?:\{|%7b|\$\{|<|\[)[^)]{0,80}"),
    Rule(
        "exfil_image",
        ALL,
        r"(?:!\[|<img\b|\bmarkdown[\W_]image|\bimage[\W_](?:tag|link|url|markdown)|\bimg[\W_]tag)",
        (
            r"https?://",
            r"\b(?:append|encode|replace|insert|include|base64|url.?encoded?|add|put|embed|concatenate|fill)\b",
            r"\b(?:conversation|chat[\W_]history|history|secrets?|passwords?|api[\W_]?keys?|user.?s?[\W_](?:data|name|message|input|question|email|details)|system[\W_]prompt|(?:base64|url.?encoded?)[\W_](?:data|summary|contents?))\b",
        ),
        160,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "exfil_curl",
        ALL,
        r"\b(?:curl|wget|invoke-webrequest|iwr|nc|ncat|requests\.post|httpie)\b[^\n]{0,160}(?:\$\(\s{0,2}(?:cat|env|printenv|base64|whoami|hostname|history)\b|`(?:cat|env|printenv|whoami)\b|@[~./\w-]{0,60}(?:\.env\b|\.ssh/|id_rsa|id_ed25519|credentials|\.netrc|passwd|\.pgpass|\.npmrc|secrets?)|/etc/(?:passwd|shadow)|<\s{0,2}~?/[^\s]{0,40}(?:\.env|id_rsa|passwd|credentials))",
    ),
    Rule(
        "exfil_curl",
        ALL,
        r"\b(?:curl|wget)\b(?![^\n]{0,200}(?:-h|--header|-u|--user|googleapis)[\s=])[^\n]{0,160}(?:-d|--data\S{0,12}|--post-data|-f|--form)[\s='\"]{1,4}[^\n]{0,80}\$\{?\w{0,30}(?:key|token|secret|password|passwd|credential|api)\w{0,20}\}?",
    ),
    Rule(
        "exfil_curl",
        ALL,
        r"\b(?:curl|wget)\b[^\n]{0,30}https?://(?!\S{0,40}googleapis)[^\s'\"]{0,100}\$\{?\w{0,30}(?:key|token|secret|password|passwd|credential)\w{0,20}\}?",
    ),
    Rule(
        "exfil_curl",
        ALL,
        r"(?:\b(?:cat|printenv|env|tar|base64|type|less)\b[^\n|]{0,60}(?:\.env\b|\.ssh|id_rsa|id_ed25519|credentials|\.netrc|/etc/(?:passwd|shadow)|secrets?)?[^\n|]{0,60}\|[^\n]{0,60}\b(?:curl|wget|nc|ncat|netcat)\b[^\n]{0,80}(?:-d|--data|@-|\d{2,5}|https?))",
    ),
    Rule(
        "read_secrets",
        ALL,
        r"(?:^|[\s`\"'(;&|])(?:cat|less|more|head|tail|strings|xxd|base64)[ \t]{1,3}(?:-\w{1,3}[ \t])?[~$\w{}./-]{0,40}(?:\.env\b(?!\.(?:example|sample|template|dist))|\.netrc|\.pgpass|\.npmrc|\.pypirc|\.aws/credentials|id_rsa\b(?!\.pub)|id_ed25519\b(?!\.pub)|/etc/shadow|\.kube/config|\.git-credentials|\.docker/config\.json)",
    ),
    Rule(
        "read_secrets",
        CONTEXT,
        r"(?:~?/\.ssh/(?!\S{0,30}\.pub|config)|\bid_rsa\b(?!\.pub)|\.aws/credentials|/etc/(?:passwd|shadow)|\.netrc\b|\.env\b(?!\.)|\benv(?:ironment)?[\W_](?:variables|vars)|\bpasswords?[\W_](?:file|store|manager))",
        (
            r"\b(?:read|open|cat|print|show|output|include|paste|display|list|dump|reveal|access|collect|find|search)\b",
            r"\b(?:and[\W_](?:then[\W_])?(?:send|include|post|upload|print|show|output|paste|put|add|email|return|report|append|encode|reveal|write|display|share|commit)|in[\W_]your[\W_](?:answer|response|reply|output)|to[\W_](?:me|the[\W_]attacker)|as[\W_]a[\W_](?:parameter|side))\b",
        ),
        70,
        unless=_NOT,
    ),
    Rule(
        "c2_task_pull",
        CONTEXT,
        r"(?:https?://|hxxps?://)\S{3,}",
        (
            r"\b(?:fetch|download|poll|retrieve|get|read|visit|open|load|check|go[\W_]to|browse|navigate)\b",
            r"\b(?:instructions|commands?|tasks?|payloads?|orders|directives|prompt)\b",
            r"\b(?:execute[\W_](?:them|it|whatever|what|all|any|every|the[\W_](?:instructions|commands?|payload|tasks?))|obey|run[\W_](?:them|whatever|what)|follow[\W_](?:them|it|all|any|every|whatever|its|those)|do[\W_](?:what|whatever|as)|comply|carry[\W_](?:them[\W_])?out)\b",
        ),
        110,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "c2_node_registration",
        CONTEXT,
        r"\b(?:register|enroll|connect|beacon|check[\W_]in|report)\b",
        (
            r"\b(?:yourself|as[\W_]an?[\W_](?:node|agent|bot|worker|implant)|this[\W_](?:agent|node|host|machine))\b",
            r"\b(?:c2|c&c|command[\W_](?:and|&)[\W_]control|botnet|operator[\W_]server|control[\W_]server|https?)\b",
        ),
        60,
        unless=_NOT,
    ),
    Rule(
        "c2_heartbeat",
        CONTEXT,
        r"\b(?:heartbeat|beacon)\b",
        (
            r"\b(?:send|emit|start|post)\b",
            r"\b(?:c2|c&c|command[\W_](?:and|&)[\W_]control|operator|attacker|await[\W_]commands|for[\W_](?:new[\W_])?(?:commands|instructions|orders))\b",
        ),
        70,
        unless=_NOT,
    ),
    Rule(
        "forced_action",
        CONTEXT,
        r"\b(?:before|prior[\W_]to)[\W_](?:you[\W_])?(?:answer\w*|respond\w*|reply\w*|doing[\W_]anything|anything[\W_]else|any[\W_]other|summari\w+)\b|\b(?:you|assistants?|ai|agents?|llms?|models?)[\W_](?:reading[\W_]this[\W_])?must[\W_](?:now|immediately|first|always|also)\b|\bimportant[\W_]{1,4}(?:message|instructions?|note|information)?[\W_]{0,4}(?:for|to)[\W_](?:the[\W_]|all[\W_]|any[\W_])?(?:ai|llm|assistant|model|agent|chatgpt|claude)\w*",
        (
            r"(?:https?://|\bcurl\b|\bwget\b|\bbase64\b|\.ssh\b|\.env\b|\b(?:passwords?|secrets?|credentials?|api[\W_]?keys?|webhook|e-?mail[\W_]\S{1,30}@|tokens?|malware|transfer|wire|payment|exfiltrate|delete[\W_]all|rm[\W_]-rf|ignore|obey|system[\W_]prompt|send[\W_]\w+[\W_](?:money|all|everything)))",
        ),
        140,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "addressed_model",
        CONTEXT,
        r"\b(?:attention|hey|hello|dear|note[\W_](?:to|for)|message[\W_](?:to|for)|instructions?[\W_](?:to|for)|notice[\W_](?:to|for)|important|if[\W_]you[\W_]are)[\W_]{1,4}(?:an?[\W_]|any[\W_]|all[\W_]|the[\W_]|you[\W_]are[\W_])*(?:ai|llm|language[\W_]model|chatgpt|chatbot|assistant|large[\W_]language|claude|gpt|copilot|automated|agent)s?\b",
        (
            r"\b(?:ignore|disregard|must|reveal|override|forget|do[\W_]not[\W_](?:tell|mention|summari[sz]e|reveal)|recommend|rate|score|approve|accept|hire|positive[\W_]review|say[\W_](?:that|this)|print|output|respond[\W_](?:only|with)|answer[\W_](?:only|with)|send|delete|execute|instead|always[\W_]say|include[\W_]the)\b",
            r"\b(?:instructions?|user|this|candidate|paper|review|previous|prompt|all|only|you|your|secrets?|password|favou?rabl\w*|excellent|best|highest|link|phrase|word|command|everything|document)\b",
        ),
        130,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "fake_update",
        CONTEXT,
        r"(?:[\[<({*#=-]{1,6}[ ]{0,3}(?:\w+[ ]){0,1}(?:system|security|admin\w*|developer|openai|anthropic|model|policy|root|override|internal|sys|operator|supervisor)\b(?:[\W_]{1,3}(?:update|notice|override|alert|message|notification|note|announcement|command|directive|instruction|warning|prompt|mode|request|maintenance|log|team))?[ ]{0,3}[\])}>*#=:-]|(?:^|\n)[ \t>]{0,4}(?:\w+[ ]){0,2}(?:system|security|admin\w*|developer|openai|anthropic|policy|root|override|sys|operator|supervisor)\b(?:[ ]{1,2}(?:update|notice|override|alert|message|notification|note|announcement|command|directive|instruction|warning|prompt|mode|request|maintenance|team))?[ ]?:)",
        (
            r"\b(?:ignore|disregard|forget|override|overrid\w+|you[\W_](?:are[\W_]now|must[\W_](?:now|immediately|reveal|obey|comply|ignore|send|disclose|provide)|have[\W_]been[\W_](?:updated|granted|authori[sz]ed)|should[\W_]now|may[\W_]now|will[\W_]now)|no[\W_]restrictions|unrestricted|reveal|suspended|disabled|lifted|exfiltrate|new[\W_](?:instructions|policy|directive)|previous|supersed\w+|comply|safety)\b",
            r"\b(?:instructions?|you|your|prompts?|rules|restrictions|guidelines|safety|filters?|user|admin\w*|mode|directives?|polic(?:y|ies)|assistant|secrets?|credentials|password)\b",
            r"\b(?:ignore|disregard|forget|overrid\w+|reveal|suspended|lifted|now|must|comply|exfiltrate|all|immediately|granted|authori[sz]ed|supersed\w+|unrestricted|previous)\b",
        ),
        90,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "fake_turn",
        CONTEXT,
        r"(?:<\|?(?:im_start|start_header_id|system|begin_of_text|im_end|endoftext|eot_id|user|assistant)\|?>|<<sys>>|\[/?inst\]|\[/?system\]|</?(?:system|instructions?|user_?query|tool_?result|document|data|context|information)>|#{2,4}[ ]?(?:system|instruction)s?\b[ :]|\n\s{0,3}(?:human|user|assistant|system)[ ]?:)",
        (
            r"\b(?:ignore|disregard|forget|override|reveal|no[\W_]restrictions|unrestricted|new[\W_]instructions|previous|system[\W_]prompt|jailbr\w+|exfiltrate|password|secrets?|api[\W_]?keys?|sure,?[\W_]here[\W_]is|comply|you[\W_]are[\W_]now)\b",
            r"\b(?:instructions?|you|your|all|must|now|prompts?|rules|reveal|send|print|i[\W_]will|output|disregard|ignore|forget|comply)\b",
        ),
        110,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "decode_execute",
        ALL,
        r"\b(?:decode|decrypt|de-?cipher|base64|rot13|hex)\b",
        (
            r"\b(?:decode|decrypt|de-?cipher|decoded|decrypted|read|translate)\b",
            r"\b(?:(?:and|then)[\W_]{1,3}(?:then[\W_])?(?:follow|obey|execute|comply|do|carry[\W_]out|perform|act[\W_]on)|(?:follow|obey|execute)[\W_](?:it|them|the|its|any|all|what)[\W_]?(?:instructions?|commands?|inside|says?|message|exactly|without)?)\b",
            r"\b(?:instructions?|commands?|it|them|says?|message|inside|exactly|string|text|base64|following|follow)\b",
        ),
        60,
        unless=_NOT,
    ),
    Rule(
        "forced_action",
        CONTEXT,
        r"\b(?:call|invoke|use|trigger|execute|run)[\W_]{1,3}(?:the[\W_]{1,3})?(?:delete|send|transfer|http|post|exec|drop|remove|wire|pay|purchase|fetch|upload|forward|share|grant|disable)_\w{2,20}\b(?!\s?\()",
        (
            r"\b(?:before|approved|now|without|attacker|first|also|complete|close|already|must|confirmed|required|housekeeping|step|cleanup|reset|url|https?|path|immediately|full[\W_]version|external)\b",
            r"(?:\bon\b|\bto\b|\bwith\b|\bwithout\b|\btool\b|https?://)",
        ),
        80,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "forced_action",
        CONTEXT,
        r"\b(?:auto(?:matically)?[\W_]{0,2}(?:approve|accept|confirm)|approve|skip|disable|bypass|turn[\W_]off|without|do[\W_]not[\W_]ask[\W_]for)\b",
        (
            r"\b(?:approvals?|confirmations?|permissions?|human[\W_](?:review|approval)|user[\W_](?:approval|consent|confirmation)|security[\W_]checks?|background[\W_]check)\b",
            r"\b(?:all[\W_](?:future|subsequent|further|following)|(?:transfer|delete|wire|pay)[\W_]\w+|from[\W_]now|for[\W_]this[\W_]session|user[\W_](?:approval|consent|confirmation)|immediately|do[\W_]not[\W_]ask)\b",
        ),
        50,
        unless=_NOT,
    ),
    Rule(
        "reverse_shell",
        ALL,
        r"(?:/dev/tcp/[\w.-]{3,60}/\d{2,5}|\bbash[ \t]{1,2}-i[ \t]{1,2}>&|\bnc(?:at)?[ \t]{1,2}(?:-\w{1,4}[ \t]{1,2}){0,3}-e[ \t]|\bmkfifo[ \t]/tmp/\w{1,10};)",
    ),
    Rule(
        "ssh_backdoor",
        CONTEXT,
        r"(?:>>[ \t]{0,2}(?:~|\$home|/root|/home/\w{1,20})?/?\.ssh/authorized_keys|nopasswd:[ \t]?all[^\n]{0,40}/etc/sudoers)",
    ),
    Rule(
        "policy_puppetry",
        ALL,
        r"\b(?:blocked|forbidden|banned|disallowed|prohibited|allow)[\W_]{0,3}(?:strings?|responses?|phrases|words|modes?|refusals?|apolog\w+|disclaimers?)\b",
        (
            r"(?:\bi.?m[\W_]sorry|\bi[\W_]can(?:not|.t)|\bapolog\w+|\bdisclaimers?\b|\brefusals?\b|\bunable[\W_]to|\bhesitation\b)",
        ),
        110,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\b(?:developer|dan|debug|jailbreak|god|maintenance|unrestricted|admin|root)[\W_]mode[\W_](?:is[\W_])?(?:now[\W_])?(?:enabled|activated|engaged|unlocked)\b[\W_]{0,3}[:!]",
        unless=_NOT,
    ),
    Rule(
        "disregard_rules",
        ALL,
        r"\b(?:ignore|disregard|forget|bypass)\b[^.\n]{0,20}\b(?:safety|the[\W_]safety[\W_]\w+|ethics|your[\W_]training|reviewer[\W_]guidelines)\b(?![\W_](?:warnings?|notices?|pins?|belts?))",
        unless=_NOT,
    ),
    Rule(
        "remove_filters",
        CONTEXT,
        r"\boverride\b",
        (
            r"\b(?:disable|disabling|lift|remove|suspend)\b",
            r"\b(?:filtering|filters?|restrictions|safety|guardrails|moderation)\b",
        ),
        50,
        unless=_NOT,
    ),
    Rule(
        "new_instructions",
        ALL,
        r"\b(?:urgent|important|real|actual|your)[\W_]new[\W_](?:task|instructions?|orders?)\b",
        (r"\b(?:print|reveal|output|ignore|say|respond|send|write|execute|show|instead|answer|repeat|do)\b",),
        60,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "hijacked_task",
        CONTEXT,
        r"\b(?:test(?:ing)?[\W_](?:pipeline|mode)?|troubleshoot\w*|debugging|diagnostics?|special[\W_]case|training[\W_]exercise|for[\W_]academic[\W_]purposes|malfunction|experimental[\W_]procedure|no[\W_]matter[\W_]what|regardless[\W_]of[\W_]any[\W_]previous)\b",
        (
            r"\b(?:please|perform|execute|do[\W_]the[\W_]following|instead|insted|generate[\W_]a[\W_]response|provide|only[\W_]this|make[\W_]sure|grant)\b",
            r"\b(?:system[\W_]prompt|previous[\W_]input|privileges|summari[sz]e[\W_]the[\W_]input|in[\W_]your[\W_](?:response|answer)|no[\W_]further[\W_]context)\b",
        ),
        130,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "fake_turn",
        CONTEXT,
        r"(?:^|\n|<thinking>|\bassistant\)?)[\W_]{0,3}(?:assistant[\W_]{0,2}:|the[\W_]user[\W_]is[\W_]clearly|i[\W_]have[\W_](?:concluded|determined|verified))",
        (
            r"\b(?:admin[\W_]password|disregard|content[\W_]policy|exempt|usual[\W_]restrictions|restricted[\W_]content|to[\W_]comply|full[\W_]answer)\b",
            r"\b(?:i[\W_](?:will|should|have|am)|sure|here[\W_]is|therefore|so)\b",
        ),
        130,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "addressed_model",
        CONTEXT,
        r"\b(?:note|message|instructions?|notice|reminder|attention|description)[\W_]{1,3}(?:to|for)[\W_](?:the[\W_]|any[\W_]|all[\W_])?(?:bot|ai|llm|assistant|agent|model|self[\W_]{1,3}persisted)s?\b|\b(?:ai|llm)[\W_](?:assistants?|agents?|models?)[\W_](?:reading|reviewing|integrating|processing|summari[sz]ing|using|parsing|analy[sz]ing|visiting|viewing)\b|\bif[\W_]you[\W_]are[\W_]an?[\W_](?:ai|llm|large[\W_]language|language[\W_]model|automated)\b",
        (
            r"\b(?:must|should[\W_]first|ignore|append|include|begin[\W_]by|instead|print|forward|verbatim|exact|empty|delete|reveal|output|respond[\W_]with|say)\b",
            r"\b(?:code|token|user|order|data|system[\W_]prompt|director(?:y|ies)|files?|verification|review|reply|response|summary|instructions?|you|everything)\b",
        ),
        150,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "fake_approval",
        CONTEXT,
        r"\b(?:user|admin\w*|owner|operator|customer)[\W_](?:has|have|had)[\W_](?:already[\W_])?(?:granted|given|approved|authori[sz]ed|confirmed|consented|agreed)\b",
        (
            r"\b(?:skip|without[\W_](?:asking|confirmation|further)|all[\W_](?:safety|checks|actions|future|requests)|for[\W_]the[\W_]rest|call[\W_]\w+_\w+|proceed[\W_]without|any[\W_]further)\b",
        ),
        110,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "fake_approval",
        ALL,
        r"(?:^|\n|[#\])>*])[ \t>*#]{0,6}(?:system|admin\w*|developer)[ \t]?:",
        (
            r"\b(?:grant|allow|approve|give)\b",
            r"\b(?:admin|all[\W_]requests|access|root|full[\W_]control|privileges|everything)\b",
        ),
        70,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "bypass_restrictions",
        ALL,
        r"\b(?:your|the)[\W_](?:rules|guidelines|restrictions|safety[\W_]\w+|polic(?:y|ies))[\W_](?:have|has|were|are|do|did|no)[\W_](?:now[\W_]|all[\W_]|been[\W_]|not[\W_])*(?:changed|lifted|removed|disabled|suspended|apply|meant|longer|waived)\b",
        (
            r"\b(?:you[\W_](?:now|can|may|must|will)|comply|allow[\W_]all|answer[\W_]without|proceed|without[\W_]restrictions|respond)\b",
        ),
        100,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "leak_system_prompt",
        ALL,
        r"(?:\bmy[\W_](?:system[\W_])?(?:instructions|prompt|rules)[\W_](?:are|is)\b|\bi[\W_]was[\W_]instructed[\W_]to\b|\bthe[\W_]system[\W_]prompt[\W_]is\b)",
        (r"\b(?:start|begin|continue|complete|finish)[\W_](?:your|the|this|with)\b",),
        40,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "leak_system_prompt",
        CONTEXT,
        r"\bwhat[\W_](?:were|are|was)[\W_]you[\W_](?:told|instructed|not[\W_]supposed[\W_]to[\W_](?:tell|say|reveal)|given|asked[\W_]to[\W_]hide)\b|\b(?:text|instructions?|prompt|message)[\W_]you[\W_]were[\W_](?:given|told)[\W_](?:initially|before|at[\W_]the[\W_](?:start|beginning)|originally|first)\b|\boutput[\W_](?:your[\W_])?initiali[sz]ation[\W_](?:string|prompt|text)\b",
    ),
    Rule(
        "persistent_payload",
        CONTEXT,
        r"\b(?:save|store|write|add|remember|persist)\b",
        (
            r"\b(?:memory|future|persist\w*)\b",
            r"\b(?:every|all)[\W_](?:future[\W_]|subsequent[\W_])(?:reply|replies|response|responses|answers?|messages?|reports?|sessions?|tasks?|conversations?)\b",
            r"\b(?:verbatim|repeat|token|code|include|append|secretly|ignore|insert)\b",
        ),
        110,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "hijacked_answer",
        CONTEXT,
        r"\b(?:append|include|add|insert|output|end|begin|reply|respond|print)\b",
        (
            r"(?:\{canary\}|\bverification[\W_](?:code|token)\b|\bexact[\W_](?:token|phrase|string|words)\b|\bcanary\b|\b(?:code|token)[\W_][a-z0-9]{2,}-[a-z0-9-]{3,}|\b[a-z]{2,}-canary-\w+)",
            r"\b(?:your|every|any|each|the)[\W_](?:final[\W_]|next[\W_])?(?:reply|response|answer|summary|report|review|output)\b|\b(?:reply|respond)[\W_]with\b|\bmust\b|\binclude\b",
        ),
        90,
        across=True,
        unless=_NOT,
    ),
    Rule(
        "anti_forensic_oneliner",
        CONTEXT,
        r"(?:\bhistory[ \t]{1,3}-c\b[^\n]{0,40}(?:&&|;)|\bunset[ \t]{1,3}histfile\b|\bhistfile=/dev/null\b|\brm[ \t]{1,3}-\w{1,4}[ \t]{1,3}(?:/var/log|~/\.(?:bash|zsh)_history))",
    ),
    Rule(
        "anti_forensic_disk",
        CONTEXT,
        r"\b(?:shred|wipe|srm)[ \t][^\n]{0,40}(?:/var/log|history|/dev/sd[a-z])|\bdd[ \t]{1,3}if=/dev/(?:zero|urandom|random)[ \t]{1,3}of=/dev/(?:sd|nvme|hd)",
    ),
    Rule(
        "destructive",
        CONTEXT,
        r"(?:\brm[ \t]{1,3}-(?:rf|fr|r[ \t]-f)[ \t]{1,3}(?:/|~|\$home|\*)(?:[\s;&`\"']|$|\*))",
        (r"\b(?:you|must|now|execute|run|immediately|please|ai|assistant|agent|ignore|instead)\b",),
        80,
        unless=rf"{_NOT}|\b(?:danger\w*|such as|e\.g\.|like|block\w*|careful)\b",
    ),
    Rule("send_to_url", STRICT, r"\b(?:send|post|upload|forward|report|transmit)\b[^\n.]{0,60}\bto[\W_]{1,3}https?://"),
    Rule(
        "context_exfil",
        STRICT,
        r"\b(?:include|output|print|share|append|attach)\b[^\n.]{0,30}\b(?:conversation|chat[\W_]history|previous[\W_]messages|full[\W_]context|entire[\W_]context|session[\W_]history)\b",
        unless=_NOT,
    ),
    Rule(
        "ssh_backdoor",
        STRICT,
        r"(?:(?:>>|\btee\b|\becho\b|\badd\b|\bappend\b|\bwrite\b|\binsert\b|\bput\b)[^\n]{0,160}authorized_keys|authorized_keys[^\n]{0,60}(?:>>|\badd|\bappend))",
    ),
    Rule(
        "ssh_access",
        STRICT,
        r"\b(?:read|cat|copy|open|print|scp|send|upload|include)\b[^\n]{0,30}(?:~|\$home|/root|/home/\w+)/\.ssh\b",
    ),
    Rule(
        "hermes_env",
        STRICT,
        r"(?:\b(?:read|cat|copy|open|print|send|upload|include|source)\b[^\n]{0,30}(?:\.hermes|hermes[-_]nb|\$hermes_nb_home)[\w./-]{0,40}(?:\.env|config\.toml|credentials|state\.db|hermes\.db))",
    ),
    Rule(
        "agent_config_mod",
        STRICT,
        r"\b(?:add|append|write|insert|inject|modify|edit|overwrite|replace|change|alter|update)\b[^\n.]{0,50}\b(?:agents\.md|claude\.md|\.cursorrules|\.hermes\.md|hermes\.md|soul\.md|\.cursor/rules|copilot-instructions\.md)",
    ),
    Rule(
        "hermes_config_mod",
        STRICT,
        r"\b(?:add|set|write|insert|modify|edit|overwrite|change|alter|turn)\b[^\n.]{0,50}(?:\bconfig\.toml\b|\bapprovals?\.mode\b|\bapprovals?[\W_](?:to[\W_])?off\b|\bhermes-nb[\W_]config[\W_]set\b)",
    ),
    Rule(
        "hardcoded_secret",
        STRICT,
        r"(?:\bsk-[a-z0-9_-]{20,}|\bghp_[a-z0-9]{30,}|\bakia[a-z0-9]{16}\b|\bxox[bp]-[a-z0-9-]{20,}|-----begin [a-z ]{0,30}private key-----)",
    ),
)
