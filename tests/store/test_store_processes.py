"""Several real processes on one file: contention, kill -9, one winner."""

from __future__ import annotations

import random
import threading
import time

import pytest

from hermes_nb.core.errors import StoreBusy
from hermes_nb.core.names import ApprovalState
from hermes_nb.store.database import Database
from hermes_nb.store.store import open_store

APPEND = """
import sys
from pathlib import Path
from hermes_nb.store.store import open_store
from hermes_nb.core.types import NewMessage
store = open_store(Path(sys.argv[1]), user="ada")
for n in range(int(sys.argv[3])):
    texts = [f"{sys.argv[2]} row {n} {part} 数据迁移 with words" for part in "ab"]
    rows = [NewMessage({"role": "user", "content": text}) for text in texts]
    print(*store.append_rows(sys.argv[2], rows), flush=True)
"""

INTERRUPTED = """
import random, signal, sys, time
from pathlib import Path
from hermes_nb.store.store import open_store
store = open_store(Path(sys.argv[1]), user="ada")
session = store.create_session()
signal.signal(signal.SIGALRM, signal.default_int_handler)
rng, acked, interrupts, end = random.Random(3), [], 0, time.monotonic() + 2
while interrupts < 200 and time.monotonic() < end:
    try:
        # One alarm at a time: it is spent when the handler below runs.
        signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0001, 0.004))
        while True:
            acked.append(store.append(session.id, {"role": "user", "content": "words 数据 " * 30}))
            store.search("数据")
    except KeyboardInterrupt:
        interrupts += 1
stored = [row.id for row in store.rows(session.id)]
assert interrupts and set(acked) <= set(stored)
assert store.session(session.id).message_count == len(stored)
store.append(session.id, {"role": "user", "content": "the store still works"})
print(store.problems(), flush=True)
"""

HOLD_LOCK = """
import sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
c.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.readline()
c.execute("COMMIT")
"""

RACE = """
import sys
from pathlib import Path
from hermes_nb.core.errors import SessionLeased
from hermes_nb.core.names import ApprovalState
from hermes_nb.store.store import open_store
store = open_store(Path(sys.argv[1]), user="ada")
me, root, request = sys.argv[2:5]
print("ready", flush=True)
sys.stdin.readline()
won = []
try:
    store.leases.acquire(root, store.leases.holder())
    won.append("lease")
except SessionLeased:
    pass
if store.approvals.answer(request, ApprovalState.APPROVED, me):
    won.append("answer")
if store.claim_handoff(me):
    won.append("handoff")
if store.queue.take(root, "message"):
    won.append("queue")
if store.inbox.first_time("discord", "a", "event"):
    won.append("event")
print(*won, flush=True)
sys.stdin.readline()
"""


def acknowledged(lines: list[str]) -> list[int]:
    return [int(word) for line in lines if line.endswith("\n") for word in line.split()]


@pytest.mark.slow
def test_four_writers_lose_nothing_and_see_no_error(store, path, start) -> None:
    sessions = [store.create_session() for _ in range(4)]
    writers = [start(APPEND, path, session.id, 100) for session in sessions]
    searches = 0
    while any(writer.poll() is None for writer in writers):
        store.search("数据迁移", sort="newest")
        searches += 1
        time.sleep(0.01)
    for session, writer in zip(sessions, writers, strict=True):
        out, err = writer.communicate()
        assert writer.returncode == 0, err
        assert [row.id for row in store.rows(session.id)] == acknowledged(out.splitlines(keepends=True))
        assert store.session(session.id).message_count == 200
    assert searches > 0
    assert len(store.search("数据迁移", limit=1000, sort="newest").hits) == 800
    assert store.problems() == []


@pytest.mark.slow
def test_kill_9_of_a_writer_loses_no_acknowledged_row_and_tears_no_group(store, path, start, raw, size, figure) -> None:
    rng = random.Random(1)
    total = 0
    rounds = size(20, 100)
    for _ in range(rounds):
        session = store.create_session()
        writer = start(APPEND, path, session.id, 100_000)
        lines = [writer.stdout.readline() for _ in range(rng.randint(1, 25))]
        writer.kill()
        lines += writer.stdout.readlines()
        writer.wait()
        acked = set(acknowledged(lines))
        stored = {row.id for row in store.rows(session.id)}
        assert acked <= stored
        assert len(stored) % 2 == 0
        assert store.session(session.id).message_count == len(stored)
        total += len(stored)
    assert store.problems() == []
    assert raw.execute("SELECT count(*) FROM w_docsize").fetchone() == (total,)
    figure("kill -9 of a writing process: rounds, acknowledged rows lost", f"{rounds}, 0")
    assert raw.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_interrupts_at_any_moment_leave_the_store_whole_and_unlocked(path, start) -> None:
    out, err = start(INTERRUPTED, path).communicate(timeout=60)
    assert out == "[]\n", err


def test_case_016_a_lock_held_elsewhere_is_waited_for(store, path, start) -> None:
    holder = start(HOLD_LOCK, path)
    assert holder.stdout.readline() == "locked\n"

    def work() -> None:
        session = store.create_session()
        store.append(session.id, {"role": "user", "content": "waited kiwi"})

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(0.3)
    assert thread.is_alive()
    assert store.search("kiwi").hits == ()
    holder.stdin.write("\n")
    holder.stdin.flush()
    thread.join(20)
    assert len(store.search("kiwi").hits) == 1


def test_a_lock_that_is_never_given_back_becomes_a_visible_error(store, path, raw) -> None:
    short = Database(path, busy_seconds=0.2)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusy, match="locked for too long"), short.write():
        pass
    raw.execute("ROLLBACK")
    with short.write():
        pass
    short.close()


def test_of_many_processes_exactly_one_wins_each_row(store, path, start) -> None:
    session = store.create_session()
    request = store.approvals.ask(session.root_id, "python", {"code": "1"}, "runs code")
    handoff = store.request_handoff(session.id, "discord")
    store.queue.add(session.root_id, "hello")
    racers = [start(RACE, path, f"p{n}", session.root_id, request.id) for n in range(4)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("\n")
        racer.stdin.flush()
    won = [word for racer in racers for word in racer.stdout.readline().split()]
    assert sorted(won) == ["answer", "event", "handoff", "lease", "queue"]
    assert store.approvals.get(request.id).state is ApprovalState.APPROVED
    assert store.handoffs.get(handoff.id).worker in {f"p{n}" for n in range(4)}


def test_many_processes_may_make_the_store_at_the_same_moment(path, start) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom hermes_nb.store.store import open_store\n"
        "s = open_store(Path(sys.argv[1]), user='ada')\nprint(s.create_session().id, s.journal_mode)\n"
    )
    makers = [start(script, path) for _ in range(5)]
    for maker in makers:
        out, err = maker.communicate(timeout=60)
        assert out.strip().endswith("wal"), err
    with open_store(path, user="ada") as store:
        assert len(store.sessions()) == 5
        assert store.notices == []
        assert store.problems() == []
        assert [holder.dead for holder in store.holders.list()] == [False]


def test_another_process_sees_a_commit_at_once_and_data_version_tells(store, path) -> None:
    with open_store(path, user="ada") as other:
        before = other.data_version()
        assert other.data_version() == before
        session = store.create_session()
        assert other.data_version() != before
        assert other.session(session.id) == session
