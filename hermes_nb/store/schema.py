"""The tables, drawn. Owns every CREATE statement of schema 1; knows no query.

    users ──< accounts            prefixes ──< sessions ──< messages ··· w, c (search, keyed by messages.id)
      └────< sessions                          sessions.root names the lineage: the sid of its first session;
                                               compaction children share it, branches and delegates begin their own

    keyed by a lineage number (root): leases routes notebooks handoffs approvals queue cell_edits
    keyed by a session number (sid):  usage late_results checkpoints

Public ids stand once, in ``sessions.id``; everything else carries integers. JSON is UTF-8 text, never escapes.
``root`` has no foreign key on purpose: it stays the lineage's number after its first session was deleted.
"""

from __future__ import annotations

PEOPLE = (
    "CREATE TABLE users(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, created REAL NOT NULL)",
    """CREATE TABLE accounts(
        platform TEXT NOT NULL, account TEXT NOT NULL, user INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE,
        display TEXT, paired REAL NOT NULL, PRIMARY KEY(platform, account)) WITHOUT ROWID""",
    "CREATE INDEX accounts_user ON accounts(user)",
    """CREATE TABLE pairings(
        code_hash TEXT PRIMARY KEY, platform TEXT NOT NULL, account TEXT NOT NULL, display TEXT,
        created REAL NOT NULL, expires_at REAL NOT NULL, attempts INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID""",
    "CREATE TABLE sources(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
)

TRANSCRIPT = (
    """CREATE TABLE prefixes(
        id TEXT PRIMARY KEY, tools BLOB NOT NULL, system BLOB NOT NULL, created REAL NOT NULL)""",
    """CREATE TABLE sessions(
        sid INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE,
        root INTEGER NOT NULL,                       -- lineage number, see the module's docstring
        parent INTEGER REFERENCES sessions(sid) ON DELETE SET NULL,
        parent_kind TEXT,                            -- compaction | branch | delegate
        branch_at INTEGER,                           -- last message of the parent that a branch has seen
        user INTEGER NOT NULL REFERENCES users(id), source INTEGER NOT NULL REFERENCES sources(id),
        title TEXT, title_by TEXT,                   -- title_by: user | model
        revision INTEGER NOT NULL DEFAULT 0,         -- raised when history changed other than by appending
        started REAL NOT NULL, ended REAL, end_reason TEXT,
        model TEXT, base_url TEXT, key_env TEXT,     -- key_env: the name of a variable, never a key
        prefix TEXT REFERENCES prefixes(id), head BLOB,
        cwd TEXT, notebook TEXT, kernel TEXT, kernel_boot TEXT,
        archived INTEGER NOT NULL DEFAULT 0, message_count INTEGER NOT NULL DEFAULT 0, last_active REAL NOT NULL,
        extra TEXT NOT NULL DEFAULT '{}')            -- JSON object for what has no column""",
    "CREATE INDEX sessions_root ON sessions(root, sid)",
    "CREATE INDEX sessions_parent ON sessions(parent) WHERE parent IS NOT NULL",
    "CREATE INDEX sessions_prefix ON sessions(prefix) WHERE prefix IS NOT NULL",
    # AUTOINCREMENT: an id is never used again, because the search index is keyed by it.
    """CREATE TABLE messages(
        id INTEGER PRIMARY KEY AUTOINCREMENT, sid INTEGER NOT NULL REFERENCES sessions(sid) ON DELETE CASCADE,
        role TEXT NOT NULL,
        wire TEXT NOT NULL,                          -- the JSON object exactly as sent
        text TEXT,                                   -- for people and search; NULL: the wire's content
        dialect TEXT NOT NULL, tool TEXT, turn TEXT,
        status INTEGER NOT NULL DEFAULT 0,           -- 0 complete 1 interrupted 2 compacted 3 undone
        ts REAL NOT NULL, fence INTEGER,
        undo INTEGER,                                -- number of the undo that hid the row
        origin INTEGER,                              -- message of which this row is a branch's copy
        platform_id TEXT)""",
    "CREATE INDEX messages_sid ON messages(sid, id)",
    "CREATE INDEX messages_platform ON messages(sid, platform_id) WHERE platform_id IS NOT NULL",
    """CREATE TABLE late_results(
        id INTEGER PRIMARY KEY, sid INTEGER NOT NULL REFERENCES sessions(sid) ON DELETE CASCADE,
        role TEXT NOT NULL, wire TEXT NOT NULL, text TEXT, dialect TEXT NOT NULL, tool TEXT, turn TEXT,
        status INTEGER NOT NULL, ts REAL NOT NULL, fence INTEGER, seen REAL)""",
    "CREATE INDEX late_results_sid ON late_results(sid, id)",
    """CREATE TABLE usage(
        id INTEGER PRIMARY KEY, sid INTEGER NOT NULL REFERENCES sessions(sid) ON DELETE CASCADE,
        turn TEXT, model TEXT NOT NULL, kind TEXT NOT NULL,
        prompt INTEGER NOT NULL, completion INTEGER NOT NULL, cached INTEGER NOT NULL, reasoning INTEGER NOT NULL,
        cost REAL, currency TEXT, ts REAL NOT NULL)""",
    "CREATE INDEX usage_sid ON usage(sid)",
    """CREATE TABLE checkpoints(
        id TEXT PRIMARY KEY, sid INTEGER NOT NULL REFERENCES sessions(sid) ON DELETE CASCADE, turn TEXT,
        label TEXT, data TEXT NOT NULL, created REAL NOT NULL) WITHOUT ROWID""",
)

SEARCH = (
    """CREATE VIRTUAL TABLE w USING fts5(
        body, tool, scope, content='',
        tokenize="unicode61 remove_diacritics 2 categories 'L* N* Co M*'")""",
    "CREATE VIRTUAL TABLE c USING fts5(g, content='', detail=none, columnsize=0)",
    # Measured at a million rows: 8 has the shortest worst append; a forced optimize never runs in normal life.
    "INSERT INTO w(w, rank) VALUES('automerge', 8)",
    "INSERT INTO c(c, rank) VALUES('automerge', 8)",
)

TURNS = (
    """CREATE TABLE leases(
        root INTEGER PRIMARY KEY, holder TEXT,       -- NULL: free; the fence goes on counting
        fence INTEGER NOT NULL, surface TEXT, acquired REAL, expires_at REAL NOT NULL DEFAULT 0)""",
    """CREATE TABLE approvals(
        id TEXT PRIMARY KEY, root INTEGER NOT NULL, holder TEXT NOT NULL, tool TEXT NOT NULL,
        arguments TEXT NOT NULL, args_hash TEXT NOT NULL, reason TEXT NOT NULL, diff TEXT,
        state TEXT NOT NULL,                         -- pending -> approved | denied | cancelled | expired
        answered_by TEXT, asked REAL NOT NULL, answered REAL, expires_at REAL NOT NULL,
        fence INTEGER) WITHOUT ROWID""",
    "CREATE INDEX approvals_pending ON approvals(asked) WHERE state='pending'",
    "CREATE INDEX approvals_root ON approvals(root)",
    """CREATE TABLE rules(
        id INTEGER PRIMARY KEY, user INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE,
        kind TEXT NOT NULL DEFAULT 'always',         -- always | confirmed (a content hash)
        tool TEXT NOT NULL, pattern TEXT NOT NULL, created REAL NOT NULL, UNIQUE(user, kind, tool, pattern))""",
    """CREATE TABLE queue(
        id INTEGER PRIMARY KEY AUTOINCREMENT, root INTEGER NOT NULL, kind TEXT NOT NULL,   -- message | steer
        text TEXT NOT NULL, surface TEXT, account TEXT, state TEXT NOT NULL DEFAULT 'waiting', -- -> taken | dropped
        created REAL NOT NULL, taken REAL, turn TEXT, extra TEXT NOT NULL DEFAULT '{}')""",
    "CREATE INDEX queue_waiting ON queue(root, id) WHERE state='waiting'",
    """CREATE TABLE cell_edits(
        id TEXT PRIMARY KEY, root INTEGER NOT NULL, turn TEXT, notebook TEXT NOT NULL, cell TEXT NOT NULL,
        before TEXT, after TEXT, state TEXT NOT NULL, created REAL NOT NULL, decided REAL) WITHOUT ROWID""",
    "CREATE INDEX cell_edits_root ON cell_edits(root)",
    """CREATE TABLE staged(
        id TEXT PRIMARY KEY, user INTEGER NOT NULL REFERENCES users(id) ON DELETE CASCADE, sid INTEGER,
        kind TEXT NOT NULL, target TEXT NOT NULL, action TEXT NOT NULL, content TEXT NOT NULL, diff TEXT,
        reason TEXT, state TEXT NOT NULL, created REAL NOT NULL, decided REAL) WITHOUT ROWID""",
    "CREATE INDEX staged_waiting ON staged(user) WHERE state='pending'",
    """CREATE TABLE counters(
        user INTEGER NOT NULL, name TEXT NOT NULL, value INTEGER NOT NULL DEFAULT 0, updated REAL NOT NULL,
        PRIMARY KEY(user, name)) WITHOUT ROWID""",
)

PLACES = (
    """CREATE TABLE routes(
        key TEXT PRIMARY KEY, root INTEGER NOT NULL, previous INTEGER, bound REAL NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX routes_root ON routes(root)",
    """CREATE TABLE notebooks(
        path TEXT PRIMARY KEY, root INTEGER NOT NULL, bound REAL NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX notebooks_root ON notebooks(root)",
    """CREATE TABLE handoffs(
        id TEXT PRIMARY KEY, root INTEGER NOT NULL, platform TEXT NOT NULL, target TEXT,
        state TEXT NOT NULL,                         -- pending -> running -> completed | failed
        claim TEXT, worker TEXT, claimed_until REAL, deadline REAL NOT NULL, error TEXT,
        route_key TEXT, previous_root INTEGER, options TEXT NOT NULL DEFAULT '{}',
        requested REAL NOT NULL, finished REAL) WITHOUT ROWID""",
    "CREATE INDEX handoffs_root ON handoffs(root)",
    "CREATE INDEX handoffs_open ON handoffs(requested) WHERE state IN ('pending', 'running')",
    """CREATE TABLE inbox(
        platform TEXT NOT NULL, account TEXT NOT NULL, event TEXT NOT NULL, body TEXT, state TEXT NOT NULL,
        received REAL NOT NULL, PRIMARY KEY(platform, account, event)) WITHOUT ROWID""",
    """CREATE TABLE deliveries(
        id TEXT PRIMARY KEY, root INTEGER, message INTEGER, platform TEXT NOT NULL, target TEXT NOT NULL,
        part INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL,
        state TEXT NOT NULL,                         -- pending -> sending -> sent | failed | unknown
        claim TEXT, claimed_until REAL, attempts INTEGER NOT NULL DEFAULT 0, not_before REAL NOT NULL DEFAULT 0,
        remote_id TEXT, error TEXT, created REAL NOT NULL, updated REAL NOT NULL) WITHOUT ROWID""",
    "CREATE INDEX deliveries_open ON deliveries(created) WHERE state IN ('pending', 'sending')",
    """CREATE TABLE holders(
        id TEXT PRIMARY KEY, holder TEXT NOT NULL, kind TEXT NOT NULL, version TEXT NOT NULL,
        started REAL NOT NULL, heartbeat REAL NOT NULL, status TEXT) WITHOUT ROWID""",
    "CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID",
)

SCHEMA_1 = PEOPLE + TRANSCRIPT + SEARCH + TURNS + PLACES
