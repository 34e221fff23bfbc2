"""Search against brute force, the public bug cases, scope, order and notices."""

from __future__ import annotations

import random
import re

import pytest

from hermes_nb.core.errors import StoreError
from hermes_nb.core.types import NewMessage
from hermes_nb.store.store import Store, open_store
from hermes_nb.store.tokeniser import TOKENISER

HAN = "\u4e00-\u9fff"


def user(text: object) -> dict[str, object]:
    return {"role": "user", "content": text}


def fill(store: Store, texts: list[str], session_id: str | None = None) -> list[int]:
    session_id = session_id or store.create_session().id
    return store.append_rows(session_id, [NewMessage(user(text)) for text in texts])


def found(store: Store, query: str, **options: object) -> list[int]:
    return [hit.message_id for hit in store.search(query, **options).hits]


@pytest.mark.parametrize("query", ["#4711", "$5", "ok?", "a,b", "50%", "deploy", "#4711 $5", '"cost $5"'])
def test_case_001_punctuation_in_the_query_finds_the_message(store, query) -> None:
    (wanted, *_) = fill(store, ["deploy failed on issue #4711, cost $5, ok? a,b 50% done", "nothing of it"])
    assert found(store, query) == [wanted]
    assert found(store, query, sort="newest") == [wanted]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("these are my mistakes", "错题本 OR wrong-book OR mistakes"),  # case 003
        ("去年去桂林旅游看漓江", "桂林 OR 漓江"),  # case 005
        ("修改widget服务端的计划", "widget"),  # case 007
        ("修改widget服务端的计划", "widget 服务端 修改"),
        ("修改widget服务端的计划", "改widget服"),
        ("see OPS-306", "OPS-306"),  # case 011
        ("see OPS-306", "ops-306"),
        ("数据库优化 with PG", "数据库优化 AND PG"),
        ("数据库优化方案", "数据库优化*"),
        ("hello deploy world", "deploy, world"),
        ("hello deploy world", "deploy/world"),
        ("hello deploy world", "@deploy"),
        ("hello deploy world", "-deploy"),
        ("hello deploy world", "deploy && world"),
        ("it's here", "it's"),
        ("the search_files tool", "search_files"),
        ("Café naïve STRASSE", "cafe NAIVE strasse"),
        ("full width ＡＢＣ１２", "abc12"),
        ("한국어 검색 시험", "국어"),
        ("ラーメンを食べる", "メンを"),
        ("ภาษาไทยง่าย", "ไทย"),
        ("हिन्दी भाषा", "भाषा"),
        ("\U00020000\U00020001 rare", "\U00020001"),
        ("deploy🦄now", "now"),
        ("done✅ today", "done"),
        ("中", "中"),
        ("one 中 two", "two 中"),
        ("Ελληνικός λόγος", "ΛΟΓΟΣ"),
    ],
)
@pytest.mark.parametrize("sort", ["rank", "newest", "oldest"])
def test_a_message_is_found_by(store, text, query, sort) -> None:
    fill(store, ["entirely unrelated", "完全无关"])
    (wanted,) = fill(store, [text])
    assert found(store, query, sort=sort) == [wanted]


def test_case_009_a_quoted_word_with_a_hyphen_is_no_pair_of_loose_words(store) -> None:
    _, wanted = fill(store, ["chat then send", "use chat-send"])
    assert found(store, '"chat-send"') == [wanted]
    assert found(store, "chat-send") == [wanted]


@pytest.mark.parametrize(
    "query",
    ['"', "AND", "NOT panic", "a OR", "budget (draft", "NEAR(", "", " ", "\0", "((((", "))))", "*", "a*", "OR OR",
     "NOT", "NOT NOT", 'a "b', "{body tool} : x", "scope : u1", "w MATCH 1", "a AND", "(" * 2000, "a AND " * 400,
     "NOT (" * 300, "x " * 5000, "🦄", "%%%", "^a", "a^2", "a:b:c", "\ud800", '"" ""', '"*"', "a NOT", "“curly”"],
)  # fmt: skip
def test_case_012_no_query_raises_and_an_empty_answer_is_explained(store, query) -> None:
    fill(store, ["plain words about a budget draft", "do not panic"])
    for sort in ("rank", "newest", "oldest"):
        result = store.search(query, sort=sort)
        if not re.search(r"[^\W_]", query):
            assert result.notice


def test_case_012_operators_without_operands_are_plain_words(store) -> None:
    panic, budget = fill(store, ["do not panic", "budget draft or plan"])
    assert found(store, "NOT panic") == [panic]
    assert found(store, "budget (draft") == [budget]
    assert budget in found(store, "plan OR")


def test_case_013_nothing_of_a_deleted_session_is_found_or_left(store, raw) -> None:
    session, other = store.create_session(), store.create_session()
    fill(store, ["zebra-42 漓江", "more"], session.id)
    (kept,) = fill(store, ["zebra stays"], other.id)
    store.delete_session(session.id)
    assert found(store, "zebra") == [kept]
    assert found(store, "江") == []
    assert raw.execute("SELECT count(*) FROM messages WHERE sid NOT IN (SELECT sid FROM sessions)").fetchone() == (0,)
    assert raw.execute("SELECT count(*) FROM w_docsize").fetchone() == (1,)
    assert raw.execute("SELECT id FROM w_docsize").fetchall() == [(kept,)]
    assert store.problems() == []


def test_case_015_nul_in_content_neither_breaks_the_index_nor_is_lost(store) -> None:
    session = store.create_session()
    wires = [user([{"type": "text", "text": "alpha\0beta"}]), user("gamma\0delta")]
    for wire in wires:
        store.append(session.id, wire)
    assert store.messages(session.id) == wires
    assert len(found(store, "beta OR delta")) == 2
    assert store.problems() == []


def test_booleans_work_across_scripts(store) -> None:
    both, han, latin = fill(store, ["数据库 deploy", "数据库 only", "deploy only"])
    assert found(store, "数据库 AND deploy") == [both]
    assert found(store, "数据库 deploy") == [both]
    assert found(store, "数据库 NOT deploy") == [han]
    assert found(store, "deploy NOT 库") == [latin]
    assert set(found(store, "数据库 OR deploy")) == {both, han, latin}
    assert set(found(store, "(数据库 OR deploy) NOT (数据库 AND deploy)")) == {han, latin}


def test_phrases_keep_order_and_ignore_punctuation_between_words(store) -> None:
    one, _two = fill(store, ["we deploy, then test", "we test then deploy"])
    assert found(store, '"deploy then test"') == [one]


def test_a_prefix_needs_three_letters_and_says_so(store) -> None:
    (deploy, _) = fill(store, ["deployment", "dense"])
    assert found(store, "dep*") == [deploy]
    assert found(store, '"deploy"') == []
    result = store.search("de*")
    assert result.hits == ()
    assert "3 letters" in (result.notice or "")


def test_tool_names_and_arguments_are_found_in_assistant_rows(store) -> None:
    session = store.create_session()
    call = {"id": "c1", "type": "function", "function": {"name": "read_file", "arguments": '{"path":"/srv/数据.csv"}'}}
    asked = store.append(session.id, {"role": "assistant", "content": None, "tool_calls": [call]})
    result = store.append(session.id, {"role": "tool", "tool_call_id": "c1", "content": "a;b;c"}, tool_name="read_file")
    assert set(found(store, "read_file")) == {asked, result}
    assert found(store, "数据") == [asked]
    assert found(store, "srv", roles=["assistant"]) == [asked]
    assert found(store, "read_file", roles=["tool"]) == [result]
    assert found(store, "read_file", roles=[]) == []


def test_search_is_narrowed_to_user_source_session_and_lineage(store) -> None:
    mine = store.create_session(source="notebook")
    chat = store.create_session(source="telegram")
    theirs = store.create_session(source="telegram", user="bob")
    (a,), (b,), (c,) = (fill(store, ["secret-kiwi 漓江 x中y"], session.id) for session in (mine, chat, theirs))
    for query in ("secret-kiwi", "kiwi", "漓江", "中"):
        assert set(found(store, query)) == {a, b}
        assert found(store, query, user="bob") == [c]
        assert found(store, query, user="nobody") == []
        assert found(store, query, sources=["telegram"]) == [b]
        assert found(store, query, sources=["telegram", "discord"]) == [b]
        assert found(store, query, sources=["discord"]) == []
        assert found(store, query, session=mine.id) == [a]
        assert found(store, query, session=theirs.id) == []
        assert found(store, query, session="unknown") == []
        assert found(store, query, exclude_root=mine.root_id) == [b]
    assert store.search("", user="bob").hits == ()


def test_compacted_rows_stay_findable_and_hits_name_session_and_root(store) -> None:
    session = store.create_session()
    (old,) = fill(store, ["early mango"], session.id)
    child = store.create_session(parent=session.id, parent_kind="compaction")
    (new,) = fill(store, ["late mango"], child.id)
    hits = {hit.message_id: hit for hit in store.search("mango").hits}
    assert hits[old].session_id == session.id
    assert hits[new].session_id == child.id
    assert hits[old].root_id == hits[new].root_id == session.id
    assert found(store, "mango", exclude_root=session.root_id) == []


def test_orders_are_by_time_or_by_rank(store) -> None:
    ids = fill(store, ["kiwi " + "filler words go on " * 40, "kiwi kiwi kiwi", "one kiwi here"])
    assert found(store, "kiwi", sort="newest") == ids[::-1]
    assert found(store, "kiwi", sort="oldest") == ids
    assert found(store, "kiwi") == [ids[1], ids[2], ids[0]]
    assert found(store, "kiwi", sort="oldest", limit=1) == ids[:1]
    assert found(store, "kiwi", limit=0) == []
    scores = [hit.score for hit in store.search("kiwi").hits]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] > 0
    with pytest.raises(StoreError, match="rank, newest, oldest"):
        store.search("kiwi", sort="best")


def test_a_bounded_ranking_says_so(store) -> None:
    fill(store, [f"common word number {n} and two" for n in range(1600)])
    result = store.search("common", limit=5)
    assert len(result.hits) == 5
    assert "newest 200" in (result.notice or "")
    assert store.search("common", sort="newest").notice is None


def test_the_snippet_shows_the_place_that_was_found_on_one_line(store) -> None:
    fill(store, ["start " * 200 + "\nthe kestrel\n\tflies 修改widget服务端 " + "end " * 200, "short 漓江"])
    (hit,) = store.search("kestrel").hits
    assert "the kestrel flies" in hit.snippet
    assert len(hit.snippet) < 260
    assert "修改widget服务端" in store.search("widget").hits[0].snippet
    assert store.search("江").hits[0].snippet == "short 漓江"


PIECES = ["deploy", "widget", "search_files", "OPS-306", "chat-send", "a,b", "Café", "x", "数据库", "数据", "桂林漓江",
          "服务端", "中", "한국어", "ラーメン", "#4711", "ok?", "🦄", "don't", "v1.2", "the", "去"]  # fmt: skip
GLUE = [" ", " ", " ", "", ", ", "\n", "-", "。", "_", " (", ") "]


def random_text(rng: random.Random) -> str:
    return "".join(rng.choice(PIECES) + rng.choice(GLUE) for _ in range(rng.randint(1, 9)))


def plain(text: str) -> str:
    return text.lower().replace("é", "e")


def leaf_is_in(leaf: str, text: str) -> bool:
    """The definition in its simplest form: scan every place and look at its borders."""
    leaf, text = plain(leaf), plain(text)
    spaced = lambda char: bool(char) and char.isalnum() and char.isascii()  # noqa: E731
    for start in range(len(text) - len(leaf) + 1):
        end = start + len(leaf)
        if text[start:end] != leaf:
            continue
        before, after = text[start - 1 : start], text[end : end + 1]
        if not (spaced(leaf[0]) and spaced(before)) and not (spaced(leaf[-1]) and spaced(after)):
            return True
    return False


@pytest.mark.parametrize("seed", range(4))
def test_any_query_agrees_with_brute_force(store, seed) -> None:
    rng = random.Random(seed)
    sessions = [store.create_session(user=name).id for name in ("ada", "ada", "bob")]
    texts: dict[int, str] = {}
    for _ in range(250):
        session_id, text = rng.choice(sessions), random_text(rng)
        (message_id,) = fill(store, [text], session_id)
        if session_id != sessions[2]:
            texts[message_id] = text
    leaves = [piece for piece in PIECES if re.search(r"[^\W_]", piece)]
    leaves += [
        "据库",
        "林漓",
        "务端",
        "库",
        "江",
        "国",
        "メン",
        "据库deploy",
        "中x",
        "端-数",
        "漓江。去",
        "absent",
        "缺",
    ]
    for _ in range(150):
        first, second = rng.choice(leaves), rng.choice(leaves)
        kind = rng.choice(["", " AND ", " OR ", " NOT ", " "])
        query = first + kind + second if kind else first
        a = {i for i, text in texts.items() if leaf_is_in(first, text)}
        b = {i for i, text in texts.items() if leaf_is_in(second, text)}
        want = {"": a, " AND ": a & b, " ": a & b, " OR ": a | b, " NOT ": a - b}[kind]
        result = store.search(query, limit=10_000, sort="newest")
        got = [hit.message_id for hit in result.hits]
        if result.notice and "punctuation" in result.notice:
            assert not want, query
            continue
        assert got == sorted(want, reverse=True), query
        assert set(found(store, query, limit=10_000)) <= want, query
        assert found(store, query, limit=10_000, sort="oldest") == sorted(want), query


def test_hiding_showing_and_deleting_agree_with_brute_force(store) -> None:
    rng = random.Random(7)
    sessions = [store.create_session().id for _ in range(6)]
    for round_number in range(120):
        session_id = rng.choice(sessions)
        match rng.randrange(5):
            case 0:
                store.undo(session_id, rng.randint(1, 3))
            case 1 if store.rows(session_id, hidden=True) and not store.rows(session_id):
                store.redo(session_id)
            case 2 if round_number > 60 and len(sessions) > 3:
                store.delete_session(session_id)
                sessions.remove(session_id)
            case _:
                fill(store, [random_text(rng) for _ in range(rng.randint(1, 4))], session_id)
    texts = {row.id: row.text for session_id in sessions for row in store.rows(session_id)}
    assert store.problems() == []
    for leaf in ("deploy", "数据", "中", "widget", "chat-send", "漓江", "the", "去"):
        want = {i for i, text in texts.items() if leaf_is_in(leaf, text)}
        if want:
            assert set(found(store, leaf, limit=10_000, sort="newest")) == want, leaf


def test_the_index_is_made_anew_after_a_change_of_the_tokeniser_or_on_demand(store, path, raw) -> None:
    session = store.create_session()
    (kept, hidden) = fill(store, ["数据 kiwi", "数据 hidden"], session.id)
    store.undo(session.id)
    raw.execute("INSERT INTO w(w) VALUES('delete-all')")
    raw.execute("UPDATE meta SET value=0 WHERE key='tokeniser'")
    assert found(store, "kiwi") == []
    with open_store(path, user="ada") as again:
        assert found(again, "kiwi") == found(again, "数据") == [kept]
        assert raw.execute("SELECT value FROM meta WHERE key='tokeniser'").fetchone() == (TOKENISER,)
    store.rebuild_search()
    assert found(store, "数据") == [kept]
    store.redo(session.id)
    assert set(found(store, "数据")) == {kept, hidden}
    assert store.problems() == []


def test_rows_that_another_tool_deleted_are_not_shown_and_break_nothing(store, raw) -> None:
    session, other = store.create_session(), store.create_session()
    fill(store, ["zebra 漓江 one", "zebra-x 漓江"], session.id)
    (kept,) = fill(store, ["zebra 漓江 kept zebra-x"], other.id)
    raw.execute("PRAGMA foreign_keys=OFF")
    raw.execute("DELETE FROM sessions WHERE id=?", (session.id,))
    for query in ("zebra", "漓江", "江", "zebra-x", "zebra OR 江"):
        for sort in ("rank", "newest"):
            assert found(store, query, sort=sort) == [kept]
