"""The file itself: opening, versions, damage, full disks, forks, journals."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

from hermes_nb.core.errors import ConfigError, StoreBusy, StoreError, StoreForked, StoreFull, StoreNewer
from hermes_nb.store.database import Database, connect
from hermes_nb.store.filesystem import file_system_type
from hermes_nb.store.migrations import MIGRATIONS, migrate
from hermes_nb.store.store import Store, open_store


def user(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def test_a_new_store_is_private_and_uses_the_write_ahead_log(store, path) -> None:
    assert store.journal_mode == "wal"
    assert store.notices == []
    for file in path.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert store.problems() == []


def test_opening_again_changes_nothing_and_a_closed_store_says_so(path) -> None:
    store = open_store(path)
    session = store.create_session()
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.append(session.id, user("x"))
    with open_store(path) as again:
        assert again.session(session.id) == session
        assert [holder.kind for holder in again.holders.list()] == ["process"]


def test_a_folder_that_cannot_be_written_is_named_with_the_way_out(tmp_path, start) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path / "file" / "state.db", tmp_path, Path("/proc/hermes/state.db")):
        with pytest.raises(ConfigError, match="HERMES_NB_HOME"):
            open_store(place)
    if os.geteuid() == 0:
        locked = tmp_path / "locked"
        locked.mkdir(mode=0o755)
        tmp_path.chmod(0o755)
        script = (
            "import os, sys\nfrom pathlib import Path\nfrom hermes_nb.store.store import open_store\n"
            "os.setuid(65534)\n"
            "try: open_store(Path(sys.argv[1]), user='x')\nexcept Exception as e: print(type(e).__name__, e)\n"
        )
        out, _ = start(script, locked / "state.db").communicate(timeout=30)
        assert out.startswith(("ConfigError", "PermissionError"))


def test_a_read_only_file_is_said_to_be_read_only(path, start) -> None:
    open_store(path).close()
    if os.geteuid() != 0:
        pytest.skip("needs another user to be refused")
    for folder in (path.parent, *path.parents[1:4]):
        folder.chmod(0o755)
    path.chmod(0o644)
    script = (
        "import os, sys\nfrom pathlib import Path\nfrom hermes_nb.store.store import open_store\n"
        "os.setuid(65534)\n"
        "try: open_store(Path(sys.argv[1]), user='x')\nexcept Exception as e: print(type(e).__name__, e)\n"
    )
    out, err = start(script, path).communicate(timeout=30)
    assert out.startswith(("StoreFull", "StoreError")), (out, err)


def test_case_021_a_damaged_file_is_moved_aside_and_said_once(path) -> None:
    with open_store(path) as store:
        store.create_session()
    noise = os.urandom(4096)
    path.write_bytes(noise)
    with open_store(path) as store:
        (notice,) = store.notices
        assert "damaged" in notice
        store.append(store.create_session().id, user("goes on"))
        assert store.problems() == []
    (aside,) = [file for file in path.parent.iterdir() if ".damaged-" in file.name and not file.name.endswith("-wal")]
    assert aside.read_bytes() == noise
    assert aside.name in notice
    with open_store(path) as store:
        assert store.notices == []


def test_an_empty_file_becomes_a_store_and_another_programs_database_is_left_alone(tmp_path) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    open_store(empty).close()
    foreign = tmp_path / "foreign.db"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE theirs(x)")
    connection.close()
    before = foreign.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        open_store(foreign)
    assert foreign.read_bytes()[28:] == before[28:] or b"theirs" in foreign.read_bytes()
    connection = sqlite3.connect(foreign)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("theirs",)]
    connection.close()


def test_a_store_written_by_a_newer_version_is_refused_at_opening_and_at_each_write(store, path, raw) -> None:
    session = store.create_session()
    raw.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    with pytest.raises(StoreNewer, match="restart"):
        store.append(session.id, user("x"))
    with pytest.raises(StoreNewer, match="pip install -U"):
        open_store(path)
    assert raw.execute("SELECT count(*) FROM messages").fetchone() == (0,)


def test_an_upgrade_waits_until_no_other_live_process_uses_the_store(path, start) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom hermes_nb.store.store import open_store\n"
        "s = open_store(Path(sys.argv[1]), kind='gateway')\nprint('open', flush=True)\nsys.stdin.read()\n"
    )
    holder = start(script, path)
    assert holder.stdout.readline() == "open\n"

    def second(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE later(x)")

    database = Database(path)
    with pytest.raises(StoreBusy, match=rf"process {holder.pid} .*gateway"):
        migrate(database, (*MIGRATIONS, second))
    holder.kill()
    holder.wait()
    migrate(database, (*MIGRATIONS, second))
    assert database.query("SELECT name FROM sqlite_master WHERE name='later'")
    database.close()


def test_a_migration_that_fails_leaves_the_file_as_it_was(path) -> None:
    open_store(path).close()

    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("CREATE TABLE half(x)")
        connection.execute("NO SQL AT ALL")

    database = Database(path)
    with pytest.raises(StoreError):
        migrate(database, (*MIGRATIONS, broken))
    assert database.query("SELECT name FROM sqlite_master WHERE name='half'") == []
    migrate(database)
    database.close()


def test_a_store_that_was_replaced_under_us_refuses_writes_instead_of_losing_them(store, path) -> None:
    session = store.create_session()
    path.rename(path.with_name("away.db"))
    with pytest.raises(StoreError, match="removed or replaced"):
        store.append(session.id, user("would be lost"))


def test_a_full_disk_is_said_and_nothing_is_half_written(path) -> None:
    opened: list[sqlite3.Connection] = []

    def small(place: Path) -> sqlite3.Connection:
        opened.append(connect(place))
        return opened[-1]

    with open_store(path, connect=small) as store:
        session = store.create_session()
        pages = opened[0].execute("PRAGMA page_count").fetchone()[0]
        opened[0].execute(f"PRAGMA max_page_count={pages + 20}")
        kept: list[int] = []

        def fill() -> None:
            while len(kept) < 1000:
                kept.append(store.append(session.id, user("text that fills the file 数据 " * 40)))

        with pytest.raises(StoreFull, match="free some space"):
            fill()
        assert [row.id for row in store.rows(session.id)] == kept
        opened[0].execute("PRAGMA max_page_count=1000000")
        store.append(session.id, user("room again"))
        assert store.problems() == []


@pytest.mark.slow
def test_a_write_cut_by_the_operating_system_loses_nothing_acknowledged(path, start) -> None:
    script = """
import resource, signal, sys
from pathlib import Path
from hermes_nb.core.errors import StoreFull
from hermes_nb.store.store import open_store
store = open_store(Path(sys.argv[1]), user="ada")
session = store.create_session()
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
n = 0
try:
    while n < 3000:
        store.append(session.id, {"role": "user", "content": f"row {n} " + "words 数据 " * 50})
        n += 1
except StoreFull:
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert len(store.messages(session.id)) == n
    store.append(session.id, {"role": "user", "content": "after"})
    print("full", n)
"""
    out, err = start(script, path).communicate(timeout=60)
    assert out.startswith("full"), err
    with open_store(path, user="ada") as store:
        (session,) = store.sessions()
        assert len(store.messages(session.id)) == int(out.split()[1]) + 1
        assert store.problems() == []


def test_without_shared_memory_a_rollback_journal_is_used_and_said_once(path) -> None:
    def dotfile(place: Path) -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{place}?vfs=unix-dotfile", uri=True, isolation_level=None, check_same_thread=False
        )

    with open_store(path, connect=dotfile) as store:
        assert store.journal_mode == "delete"
        (notice,) = store.notices
        assert "HERMES_NB_HOME" in notice
        session = store.create_session()
        store.append(session.id, user("works 数据"))
        assert store.search("数据").hits
        assert store.undo(session.id) == 1


def test_case_018_a_locking_error_of_the_file_system_falls_back_too(path) -> None:
    class Refusing(sqlite3.Connection):
        def execute(self, sql: str, *values: object) -> sqlite3.Cursor:
            if sql == "PRAGMA journal_mode=WAL":
                error = sqlite3.OperationalError("locking protocol")
                error.sqlite_errorcode = sqlite3.SQLITE_PROTOCOL
                raise error
            return super().execute(sql, *values)

    def refused(place: Path) -> sqlite3.Connection:
        return sqlite3.connect(place, isolation_level=None, check_same_thread=False, factory=Refusing)

    with open_store(path, connect=refused) as store:
        assert store.journal_mode == "delete"
        assert "locking protocol" in store.notices[0]
        store.append(store.create_session().id, user("works"))


def test_a_network_file_system_is_told_by_its_type(path, tmp_path) -> None:
    database = Database(path, network=lambda _: True)
    assert database.journal_mode == "delete"
    assert "network" in database.notices[0]
    database.close()
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/a / ext4 rw 0 0\nserver:/x {tmp_path} nfs4 rw 0 0\n/dev/b {tmp_path}/my\\040disk xfs rw 0 0\n"
    )
    assert file_system_type(tmp_path / "home" / "state.db", mounts) == "nfs4"
    assert file_system_type(tmp_path / "my disk" / "state.db", mounts) == "xfs"
    assert file_system_type(Path("/elsewhere"), mounts) == "ext4"
    assert file_system_type(Path("/elsewhere"), tmp_path / "none") is None


def test_a_search_does_not_wait_behind_a_write_of_the_same_process(store) -> None:
    session = store.create_session()
    store.append(session.id, user("kiwi"))
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with store._database.write() as connection:
            connection.execute("INSERT INTO meta(key, value) VALUES('held', 1)")
            entered.set()
            assert leave.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    assert entered.wait(10)
    assert len(store.search("kiwi").hits) == 1
    assert len(store.messages(session.id)) == 1
    assert thread.is_alive()
    leave.set()
    thread.join()


def use_in_child(store: Store, session_id: str, path: Path, report: object) -> None:
    outcomes = []
    for use in (lambda: store.messages(session_id), lambda: store.append(session_id, user("from the child"))):
        try:
            use()
        except StoreForked as exc:
            outcomes.append("open_store" in str(exc))
    store.close()
    with open_store(path, user="ada") as own:
        own.append(session_id, user("child's own store"))
    report.put(outcomes)  # type: ignore[attr-defined]


def test_a_forked_child_cannot_use_the_store_harms_nothing_and_may_open_its_own(store, path) -> None:
    session = store.create_session()
    store.append(session.id, user("before"))
    context = multiprocessing.get_context("fork")
    report = context.Queue()
    for _ in range(3):
        child = context.Process(target=use_in_child, args=(store, session.id, path, report))
        child.start()
        assert report.get(timeout=30) == [True, True]
        child.join()
        assert child.exitcode == 0
        store.append(session.id, user("parent goes on"))
    assert len(store.messages(session.id)) == 7
    assert store.problems() == []


def test_children_that_end_normally_while_the_parent_writes_harm_nothing(store) -> None:
    session = store.create_session()
    stop, written = threading.Event(), []

    def write() -> None:
        while not stop.is_set():
            written.append(store.append(session.id, user(f"row {len(written)} 数据")))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(15):
            # A plain fork whose interpreter ends: every inherited object is finalised.
            pid = os.fork()
            if pid == 0:
                try:
                    store.close()
                    raise SystemExit
                except SystemExit:
                    os._exit(0)
            assert os.waitpid(pid, 0)[1] == 0
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2]
    finally:
        stop.set()
        writer.join()
    assert [row.id for row in store.rows(session.id)] == written
    assert store.problems() == []


def test_an_interpreter_that_exits_after_a_fork_does_not_close_the_parents_connections(path, start) -> None:
    script = """
import os, sys
from pathlib import Path
from hermes_nb.store.store import open_store
store = open_store(Path(sys.argv[1]), user="ada")
session = store.create_session()
with store._database.write() as connection:
    connection.execute("INSERT INTO meta(key, value) VALUES('in the middle', 1)")
    # No code of ours forks inside a transaction; a callback of the user's could.
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    assert os.waitpid(pid, 0)[1] == 0
store.append(session.id, {"role": "user", "content": "after"})
print(store.problems(), len(store.messages(session.id)))
"""
    out, err = start(script, path).communicate(timeout=60)
    assert out.strip() == "[] 1", err
