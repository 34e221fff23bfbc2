"""The right to run a turn, and what happens to writes of one who lost it."""

from __future__ import annotations

import pytest

from hermes_nb.core.errors import LeaseLost, SessionLeased
from hermes_nb.core.types import NewMessage
from hermes_nb.store.store import open_store

HOLD = """
import sys
from pathlib import Path
from hermes_nb.store.store import open_store
store = open_store(Path(sys.argv[1]), user="ada")
store.leases.acquire(sys.argv[2], store.leases.holder(), surface="cell")
print("held", flush=True)
sys.stdin.read()
"""


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def test_a_second_turn_of_the_lineage_is_refused_and_told_who_holds_it(store) -> None:
    session = store.create_session()
    store.leases.acquire(session.root_id, store.leases.holder(), surface="cell")
    with pytest.raises(SessionLeased, match=r"this process \(cell\)"):
        store.leases.acquire(session.root_id, store.leases.holder())
    other = store.create_session()
    store.leases.acquire(other.root_id, store.leases.holder())


def test_the_fence_rises_with_every_acquisition_even_after_a_release(store) -> None:
    session = store.create_session()
    fences = []
    for _ in range(3):
        lease = store.leases.acquire(session.root_id, store.leases.holder())
        fences.append(lease.fence)
        assert store.leases.release(lease)
        assert not store.leases.release(lease)
    assert fences == [1, 2, 3]


def test_rows_under_an_advanced_fence_are_refused_kept_apart_and_not_found(store) -> None:
    session = store.create_session()
    old = store.leases.acquire(session.root_id, store.leases.holder())
    store.append(session.id, user("in time"), lease=old)
    new = store.leases.advance(old)
    with pytest.raises(LeaseLost, match="2 late row"):
        store.append_rows(session.id, [NewMessage(user("late one")), NewMessage(user("late two"))], lease=old)
    store.append(session.id, user("cancelled"), lease=new)
    assert store.messages(session.id) == [user("in time"), user("cancelled")]
    assert [row.text for row in store.late_results(session.id)] == ["late one", "late two"]
    assert not store.search("late").hits
    assert not store.leases.renew(old)
    assert store.leases.renew(new)
    with pytest.raises(LeaseLost):
        store.leases.advance(old)
    with pytest.raises(LeaseLost):
        store.approvals.ask(session.root_id, "python", {}, "because", lease=old)


def test_the_lease_of_one_lineage_does_not_allow_writing_in_another(store) -> None:
    one, two = store.create_session(), store.create_session()
    lease = store.leases.acquire(one.root_id, store.leases.holder())
    with pytest.raises(LeaseLost):
        store.append(two.id, user("wrong place"), lease=lease)


def test_the_lease_covers_the_child_that_a_compaction_opens(store) -> None:
    session = store.create_session()
    lease = store.leases.acquire(session.root_id, store.leases.holder())
    child = store.create_session(parent=session.id, parent_kind="compaction")
    store.append(child.id, user("goes on"), lease=lease)
    with pytest.raises(SessionLeased):
        store.leases.acquire(child.id, store.leases.holder())
    assert store.leases.current(child.id) is not None


def test_a_live_process_is_not_robbed_and_a_killed_one_is_replaced_at_once(store, path, start) -> None:
    session = store.create_session()
    process = start(HOLD, path, session.id)
    assert process.stdout.readline() == "held\n"
    with pytest.raises(SessionLeased, match=rf"process {process.pid} on this machine \(cell\)"):
        store.leases.acquire(session.root_id, store.leases.holder())
    process.kill()
    process.wait()
    lease = store.leases.acquire(session.root_id, store.leases.holder())
    assert lease.fence == 2


def test_a_holder_of_before_a_reboot_is_dead_and_one_of_another_host_is_not(store, raw) -> None:
    host, _boot, pid, began = store.leases.holder().split("/")
    for holder, free in (
        (f"{host}/another-boot/{pid}/{began}", True),
        (f"{host}/{_boot}/{pid}/1", True),
        (f"elsewhere.1/{_boot}/999999/5", False),
        ("strange words", False),
    ):
        session = store.create_session()
        store.leases.acquire(session.root_id, holder)
        if free:
            store.leases.acquire(session.root_id, store.leases.holder())
            continue
        with pytest.raises(SessionLeased):
            store.leases.acquire(session.root_id, store.leases.holder())
        raw.execute("UPDATE leases SET expires_at=1 WHERE fence=1 AND holder=?", (holder,))
        store.leases.acquire(session.root_id, store.leases.holder())


def test_the_user_may_take_over_from_a_live_holder(store, path) -> None:
    session = store.create_session()
    old = store.leases.acquire(session.root_id, store.leases.holder())
    with open_store(path, user="ada") as other:
        new = other.leases.acquire(session.root_id, other.leases.holder(), force=True)
    assert not store.leases.held(old)
    assert store.leases.held(new)
