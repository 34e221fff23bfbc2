"""Sessions, lineages, titles, deletion, places, people."""

from __future__ import annotations

import pytest

from hermes_nb.core.errors import InvalidTransition, SessionNotFound, StoreError
from hermes_nb.core.names import ParentKind
from hermes_nb.core.types import Usage
from hermes_nb.store.prefixes import make_prefix
from hermes_nb.store.store import open_store


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def test_a_session_has_an_owner_and_its_own_lineage(store) -> None:
    session = store.create_session(source="notebook", title="  Plan\nfor\x07 \u202eMay ", cwd="/w", model="m")
    assert (session.user, session.source, session.title) == ("ada", "notebook", "Plan for May")
    assert (session.root_id, session.parent_id, session.parent_kind) == (session.id, None, None)
    assert (session.cwd, session.model, session.message_count, session.archived) == ("/w", "m", 0, False)
    assert store.session(session.id) == session
    assert store.create_session(user="bob").user == "bob"
    assert len(store.create_session(title="x" * 300).title or "") == 100
    with pytest.raises(SessionNotFound, match="unknown"):
        store.session("unknown")
    with pytest.raises(SessionNotFound):
        store.create_session(parent="unknown")


def test_a_compaction_continues_the_lineage_and_ends_the_parent(store) -> None:
    first = store.create_session(title="Talk", model="m", cwd="/w")
    store.bind("key", first.id)
    second = store.create_session(parent=first.id, parent_kind="compaction")
    third = store.create_session(parent=second.id, parent_kind=ParentKind.COMPACTION)
    assert store.session(first.id).end_reason == "compressed"
    assert {second.root_id, third.root_id} == {first.id}
    assert (third.title, third.model, third.cwd, third.user) == ("Talk", "m", "/w", "ada")
    assert third.revision > second.revision > first.revision
    assert [session.id for session in store.lineage(second.id)] == [first.id, second.id, third.id]
    assert store.tip(first.id) == store.tip(second.id) == third
    assert store.resolve("key") == third
    assert [session.id for session in store.sessions()] == [third.id]
    with pytest.raises(InvalidTransition, match="compacted already"):
        store.create_session(parent=first.id, parent_kind="compaction")


def test_a_branch_begins_a_lineage_of_its_own_and_remembers_its_parent(store) -> None:
    first = store.create_session(title="Talk")
    branch = store.create_session(parent=first.id)
    delegate = store.create_session(parent=first.id, parent_kind="delegate")
    assert (branch.root_id, branch.parent_id, branch.parent_kind) == (branch.id, first.id, ParentKind.BRANCH)
    assert store.tip(first.id).id == first.id
    assert [session.id for session in store.lineage(branch.id)] == [first.id, branch.id]
    assert [session.id for session in store.lineage(first.id)] == [first.id]
    listed = {session.id for session in store.sessions()}
    assert listed == {first.id, branch.id}
    assert delegate.parent_kind is ParentKind.DELEGATE


def test_lists_are_newest_activity_first_and_scoped(store) -> None:
    one, two = store.create_session(), store.create_session(source="telegram")
    theirs = store.create_session(user="bob")
    store.append(one.id, user("again"))
    assert [session.id for session in store.sessions()] == [one.id, two.id]
    assert [session.id for session in store.sessions(limit=1)] == [one.id]
    assert [session.id for session in store.sessions(sources=["telegram"])] == [two.id]
    assert store.sessions(sources=[]) == []
    assert [session.id for session in store.sessions("bob")] == [theirs.id]
    store.update_session(one.id, archived=True)
    assert [session.id for session in store.sessions()] == [two.id]
    assert len(store.sessions(archived=True)) == 2


def test_a_session_is_found_by_id_title_and_their_beginnings(store) -> None:
    plan = store.create_session(title="Plan for 100% May")
    other = store.create_session(title="Plan B")
    hidden = store.create_session(title="Secret", user="bob")
    assert store.find_session(plan.id).id == plan.id
    assert store.find_session(plan.id[:-2]).id == plan.id
    assert store.find_session("Plan B").id == other.id
    assert store.find_session("Plan for 100%").id == plan.id
    child = store.create_session(parent=plan.id, parent_kind="compaction")
    assert store.find_session(plan.id).id == child.id
    assert store.find_session("Plan for 100% May").id == child.id
    with pytest.raises(SessionNotFound, match="several"):
        store.find_session("Plan")
    with pytest.raises(SessionNotFound, match=r"Near: .*Plan B"):
        store.find_session("Plam B")
    for reference in ("", "%", "_", "Secret", hidden.id):
        with pytest.raises(SessionNotFound):
            store.find_session(reference)
    assert store.find_session("Secret", "bob").id == hidden.id


def test_fields_can_be_changed_but_never_owner_or_source(store) -> None:
    session = store.create_session()
    changed = store.update_session(session.id, title="New", model="m2", key_env="KEY")
    assert (changed.title, changed.model, changed.key_env) == ("New", "m2", "KEY")
    for field in ("user", "source", "id", "root", "x; DROP TABLE messages"):
        with pytest.raises(StoreError, match="no changeable field"):
            store.update_session(session.id, **{field: "bob"})
    store.end_session(session.id, "first")
    store.end_session(session.id, "second")
    assert store.session(session.id).end_reason == "first"


def test_deleting_removes_the_lineage_and_delegates_but_keeps_branches(store, raw) -> None:
    first = store.create_session()
    branch = store.create_session(parent=first.id)
    second = store.create_session(parent=first.id, parent_kind="compaction")
    delegate = store.create_session(parent=second.id, parent_kind="delegate")
    for session in (first, second, delegate, branch):
        store.append(session.id, user("zebra"))
        store.usage.add(session.id, "t", "m", Usage(1, 1))
        store.freeze_prefix(session.id, make_prefix(b"[]", session.id.encode()), b"{")
    store.bind("key", first.id)
    store.bind_notebook("/n.ipynb", first.id)
    store.approvals.ask(first.id, "python", {}, "why")
    store.request_handoff(first.id, "discord")
    store.leases.acquire(first.id, store.leases.holder())
    store.queue.add(first.id, "later")
    store.deliveries.add(first.id, "discord", "x", "body")
    store.delete_session(second.id)
    assert [session.id for session in store.sessions()] == [branch.id]
    assert store.session(branch.id).parent_id is None
    assert len(store.search("zebra").hits) == 1
    assert store.resolve("key") is None
    assert store.notebook_session("/n.ipynb") is None
    for table in ("leases", "approvals", "queue", "routes", "notebooks", "handoffs", "deliveries"):
        assert raw.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
    assert raw.execute("SELECT count(*) FROM prefixes").fetchone() == (1,)
    assert store.problems() == []
    with pytest.raises(SessionNotFound):
        store.delete_session(first.id)


@pytest.mark.parametrize("kind", ["branch", "compaction"])
def test_case_022_pruning_the_old_end_of_a_chain_keeps_what_followed(store, raw, kind) -> None:
    a = store.create_session()
    chain = [a]
    for _ in range(3):
        chain.append(store.create_session(parent=chain[-1].id, parent_kind=kind))
    for session in chain:
        store.append(session.id, user(f"kept {session.id}"))
    store.bind("key", chain[3].id)
    assert store.prune_sessions([chain[0].id, chain[1].id]) == 2
    c, d = store.session(chain[2].id), store.session(chain[3].id)
    assert (c.parent_id, c.parent_kind) == (None, None)
    assert d.parent_id == c.id
    assert d.root_id == (c.root_id if kind == "compaction" else d.id)
    assert store.tip(c.id).id == (d.id if kind == "compaction" else c.id)
    assert store.resolve("key").id == d.id
    store.append(d.id, user("goes on"), lease=store.leases.acquire(d.root_id, store.leases.holder()))
    assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    assert store.problems() == []


def test_case_023_a_parent_deleted_by_another_tool_does_not_stop_the_child(store, raw) -> None:
    parent = store.create_session()
    child = store.create_session(parent=parent.id, parent_kind="compaction")
    raw.execute("PRAGMA foreign_keys=OFF")
    raw.execute("DELETE FROM sessions WHERE id=?", (parent.id,))
    for turn in range(3):
        lease = store.leases.acquire(store.tip(child.id).root_id, store.leases.holder())
        store.append(child.id, user(f"turn {turn}"), lease=lease)
        store.leases.release(lease)
    session = store.session(child.id)
    assert (session.parent_id, session.parent_kind, session.root_id) == (None, None, child.id)
    assert len(store.messages(child.id)) == 3
    assert store.tip(child.id).id == child.id
    assert [row.id for row in store.lineage(child.id)] == [child.id]
    store.delete_session(child.id)
    assert raw.execute("SELECT count(*) FROM messages").fetchone() == (0,)


def test_routes_name_the_lineage_and_remember_nothing_of_messages(store) -> None:
    one, two = store.create_session(), store.create_session()
    assert store.resolve("k") is None
    assert store.bind("k", one.id) is None
    assert store.bind("k", two.id) == one.root_id
    assert store.resolve("k").id == two.id
    assert store.session_keys(two.id) == ["k"]
    assert store.unbind("k")
    assert not store.unbind("k")
    with pytest.raises(SessionNotFound):
        store.bind("k", "unknown")


def test_a_notebook_is_bound_to_a_lineage_and_the_other_way_round(store) -> None:
    session = store.create_session()
    store.bind_notebook("/a.ipynb", session.id)
    store.bind_notebook("/b.ipynb", session.id)
    child = store.create_session(parent=session.id, parent_kind="compaction")
    assert store.notebook_session("/a.ipynb").id == child.id
    assert store.notebook_path(session.root_id) == "/b.ipynb"
    assert store.notebook_path("unknown") is None
    assert store.notebook_session("/none.ipynb") is None


def test_accounts_speak_for_one_user_and_strangers_for_nobody(store) -> None:
    assert store.accounts.user_of("discord", "1") is None
    store.accounts.link("discord", "1")
    store.accounts.link("telegram", "2", "bob")
    assert store.accounts.user_of("discord", "1") == "ada"
    assert store.accounts.of() == [("discord", "1")]
    store.accounts.link("discord", "1", "bob")
    assert store.accounts.user_of("discord", "1") == "bob"
    assert store.accounts.unlink("discord", "1")
    assert store.accounts.user_of("discord", "1") is None


def test_a_prefix_is_frozen_once_and_replaced_only_on_purpose(store, path, raw) -> None:
    session = store.create_session()
    assert store.prefix(session.id) is None
    one = make_prefix(b'[{"t":1}]', '{"role":"system","content":"é 数据"}'.encode())
    two = make_prefix(b"", b'{"role":"system","content":"later"}')
    assert store.freeze_prefix(session.id, one, b'{"model":"m",') == one
    assert store.freeze_prefix(session.id, two, b'{"model":"n",') == one
    assert store.session(session.id).head == b'{"model":"m",'
    with open_store(path, user="ada") as again:
        assert again.prefix(session.id) == one
    revision = store.session(session.id).revision
    assert store.freeze_prefix(session.id, two, b'{"model":"n",', replace=True) == two
    assert (store.session(session.id).head, store.session(session.id).revision) == (b'{"model":"n",', revision)
    other = store.create_session()
    store.freeze_prefix(other.id, two, b"{")
    assert raw.execute("SELECT count(*) FROM prefixes").fetchone() == (2,)
    assert make_prefix(b"ab", b"c").id != make_prefix(b"a", b"bc").id
    with pytest.raises(SessionNotFound):
        store.prefix("unknown")


def test_case_038_a_prefix_that_was_lost_is_frozen_anew_and_stays(store, raw) -> None:
    session = store.create_session()
    one, two = make_prefix(b"[]", b"{1}"), make_prefix(b"[]", b"{2}")
    store.freeze_prefix(session.id, one, b"{")
    raw.execute("PRAGMA foreign_keys=OFF")
    raw.execute("DELETE FROM prefixes")
    assert store.prefix(session.id) is None
    assert store.freeze_prefix(session.id, two, b"{") == two
    assert store.freeze_prefix(session.id, one, b"{") == two


def test_usage_is_summed_over_the_lineage(store) -> None:
    session = store.create_session()
    child = store.create_session(parent=session.id, parent_kind="compaction")
    store.usage.add(session.id, "t1", "m", Usage(10, 5, 3, 2))
    store.usage.add(child.id, "t2", "n", Usage(1, 1), kind="title")
    assert store.usage.total(session.id) == store.usage.total(child.id) == Usage(11, 6, 3, 2)
    assert store.usage.by_model("ada") == {"m": Usage(10, 5, 3, 2), "n": Usage(1, 1)}
    assert store.usage.total(store.create_session().id) == Usage()


def test_writing_to_a_session_that_another_process_deleted_is_an_error_not_a_loss(store, path) -> None:
    session = store.create_session()
    with open_store(path, user="ada") as other:
        other.delete_session(session.id)
    with pytest.raises(SessionNotFound):
        store.append(session.id, user("x"))


def test_a_branch_goes_on_with_the_same_bytes_and_neither_side_touches_the_other(store) -> None:
    session = store.create_session(title="Talk", model="m")
    first = store.append(session.id, user("zebra 漓江"), turn_id="t1")
    store.append(session.id, {"role": "assistant", "content": "answer"}, turn_id="t1", status="interrupted")
    store.append(session.id, user("second"), turn_id="t2")
    store.append(session.id, user("taken back"), turn_id="t3")
    store.undo(session.id)
    prefix = store.freeze_prefix(session.id, make_prefix(b"[]", b"{}"), b"{")
    branch = store.branch(session.id)
    assert [row.wire for row in store.rows(branch.id)] == [row.wire for row in store.rows(session.id)]
    assert [row.status for row in store.rows(branch.id)] == [row.status for row in store.rows(session.id)]
    assert (branch.title, branch.model, branch.parent_id, branch.root_id) == ("Talk", "m", session.id, branch.id)
    assert store.prefix(branch.id) == prefix
    assert (branch.head, branch.message_count) == (b"{", 3)
    assert len(store.search("zebra").hits) == len(store.search("江").hits) == 1
    assert store.undo(branch.id, turns=2) == 3
    assert len(store.messages(session.id)) == 3
    assert store.redo(session.id) == 1
    early = store.branch(session.id, at=first, title="Early")
    assert [row.text for row in store.rows(early.id)] == ["zebra 漓江"]
    twice = store.branch(early.id)
    store.delete_session(session.id)
    assert {hit.session_id for hit in store.search("zebra").hits} <= {early.id, twice.id}
    assert len(store.search("zebra").hits) == 1
    assert store.session(branch.id).parent_id is None
    assert store.problems() == []
    with pytest.raises(SessionNotFound):
        store.branch(session.id)
