"""ROOT/index.sqlite: what the run directories hold, in a form that can be asked. It only mirrors them.

Only who asks writes it, so that no run depends on it. It is brought up to date before each question, and made
anew where it cannot be read. Who has it open holds the lock of a file beside it: a database that is replaced
while others have it open would be damaged, or look empty.
"""

import contextlib
import os
import shutil
import sqlite3
import tempfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from softstack.errors import BadInput, unknown
from softstack.lab import plugins
from softstack.lab.runs import disk, store, where
from softstack.lab.training.conditions import NUMERICS, Condition
from softstack.words import shown

FILE = "index.sqlite"
LOCK = ".index-lock"
BESIDE = ".index-new-"  # where one is made anew
COLUMNS: dict[str, type] = {
    "condition": str,
    "seed": int,
    "dev": float,
    "test": float,
    "epochs": int,
    "dev_loss": float,  # empty where it was not written down, as in softstack 0.1, and where it is no number
    "diverged": bool,
    **{field.name: field.type for field in fields(Condition) if isinstance(field.type, type)},
    "numerics": int,
    "seconds": float,
    "commit": str,
    "device": str,
    "path": str,
}
KINDS = {str: "TEXT", int: "INTEGER", bool: "INTEGER", float: "REAL"}
SCHEMA = f"""
CREATE TABLE runs ({", ".join(f'"{name}" {KINDS[kind]}' for name, kind in COLUMNS.items())},
                   stamp TEXT NOT NULL, PRIMARY KEY (path));
CREATE TABLE unreadable (path TEXT PRIMARY KEY, reason TEXT NOT NULL, stamp TEXT NOT NULL);
"""
VERSION = zlib.crc32(SCHEMA.encode()) >> 1 or 1
Row = dict[str, Any]


def places(root: Path) -> Iterator[tuple[str, str]]:
    """Every run directory under a root, as `condition/seed-n`, which may be in folders, with a stamp that
    changes when it does. Links are not followed: what is under a root is in it."""
    for folder in disk.folders(root):
        if folder == root:
            continue
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            runs = [e for e in entries if e.name.startswith("seed-") and e.name[5:].isdigit()]
            for entry in sorted(runs, key=lambda entry: entry.name):
                if entry.is_dir(follow_symlinks=False):
                    yield str((folder / entry.name).relative_to(root)), _stamp(entry.path)


def _stamp(path: str) -> str:
    """Writing to a file changes the time of its last change, even where its other times are set back."""
    parts = []
    for name in store.FILES:
        try:
            about = os.stat(os.path.join(path, name))
            parts.append(f"{about.st_ino} {about.st_ctime_ns} {about.st_size}")
        except OSError:
            parts.append("-")
    return ", ".join(parts)


def row(root: Path, path: str) -> Row:
    """The columns of a run. One whose plugin is missing is listed all the same: its files have them all."""
    if not path.isprintable():
        raise BadInput("its name has characters that cannot be printed: rename it")
    try:
        run = store.load(root / path)
        facts = {**run.result, **asdict(run.condition)}  # both have restarts: those of the result are a list
        source = run.provenance
    except plugins.MissingPlugin:
        facts = store.listed(root / path)
        source = facts.pop("provenance")
    return {
        **{name: facts[name] for name in ("seed", "dev", "test", "epochs")},
        "dev_loss": facts.get("dev_loss"),
        "diverged": facts.get("diverged", False),
        **{field.name: facts[field.name] for field in fields(Condition)},
        "condition": path.split("/")[-2],
        "numerics": NUMERICS,
        "seconds": float(source["seconds"]),
        "commit": shown(str(source["commit"])),
        "device": shown(str(source["device"])),
        "path": path,
    }


def refresh(root: Path, database: sqlite3.Connection) -> None:
    """Bring the index up to date: what is new or changed is read, what is gone is forgotten."""
    stamps = dict(places(root))
    with database:
        database.execute("BEGIN IMMEDIATE")
        stamps_before = dict(database.execute("SELECT path, stamp FROM runs"))
        old = [(path,) for path, stamp in stamps_before.items() if stamps.get(path) != stamp]
        database.executemany("DELETE FROM runs WHERE path = ?", old)
        database.execute("DELETE FROM unreadable")  # a task that one of them needs may be known now
        for path, stamp in stamps.items():
            if stamps_before.get(path) != stamp:
                try:
                    values = {**row(root, path), "stamp": stamp}
                    marks, names = ", ".join("?" * len(values)), ", ".join(f'"{name}"' for name in values)
                    database.execute(f"INSERT INTO runs ({names}) VALUES ({marks})", tuple(values.values()))
                except sqlite3.OperationalError:
                    raise  # the disk is full, or the index damaged
                except Exception as error:  # whatever one directory holds, the others are listed
                    reason = str(error) or type(error).__name__
                    line = (shown(path), shown(reason), stamp)
                    database.execute("INSERT OR REPLACE INTO unreadable VALUES (?, ?, ?)", line)


def connected(place: Path | str) -> sqlite3.Connection:
    """An index that can be used, empty if it was not there. A file that is no index is an error."""
    database = sqlite3.connect(place, timeout=30, isolation_level=None)
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version == 0 and not database.execute("SELECT name FROM sqlite_master").fetchall():
            database.executescript(f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT")
        elif version != VERSION:
            raise sqlite3.DatabaseError("it was made by another version of softstack")
        (state,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if state != "ok":
            raise sqlite3.DatabaseError(state)
    except BaseException:
        database.close()
        raise
    return database


@contextlib.contextmanager
def opened(root: Path, say: Callable[[str], None]) -> Iterator[sqlite3.Connection]:
    """The index of a root, up to date. Where the root takes no file it is made in memory."""
    _check(root)
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(disk.alone(root / LOCK))
            database = _usable(root, say)
        except (sqlite3.Error, OSError) as error:
            if os.access(root, os.W_OK):
                say(f"{root / FILE} cannot be written ({error}): the run directories are read for this once")
            database = connected(":memory:")
            refresh(root, database)
        yield stack.enter_context(contextlib.closing(database))


def _usable(root: Path, say: Callable[[str], None]) -> sqlite3.Connection:
    try:
        database = connected(root / FILE)
        refresh(root, database)
        return database
    except sqlite3.Error as error:
        say(f"{root / FILE} cannot be used ({error}): it is made anew from the run directories")
    _make_anew(root)
    return connected(root / FILE)


def rebuild(root: Path) -> tuple[int, dict[str, str]]:
    """Make the index anew from the run directories alone: how many can be read, and which cannot, and why."""
    _check(root)
    with disk.alone(root / LOCK):
        try:
            _make_anew(root)
        except sqlite3.Error as error:
            raise BadInput(f"{root / FILE} cannot be written ({error}): it is as it was") from None
        with contextlib.closing(connected(root / FILE)) as database:
            (count,) = database.execute("SELECT COUNT(*) FROM runs").fetchone()
            return count, unreadable(database)


def _make_anew(root: Path) -> None:
    """Write a new index beside the old one, and replace that. The caller must hold the lock."""
    for path in root.glob(f"{BESIDE}*"):  # left by a kill
        shutil.rmtree(path, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=BESIDE, dir=root) as folder:
        fresh = Path(folder) / FILE
        with contextlib.closing(connected(fresh)) as database:
            refresh(root, database)
        for name in (f"{FILE}-journal", f"{FILE}-wal"):  # an old journal must not meet a new index
            (root / name).unlink(missing_ok=True)
        fresh.replace(root / FILE)


def _check(root: Path) -> None:
    if not root.is_dir():
        raise BadInput(
            f"{root} is not a directory of runs: `softstack train` and `softstack sweep` make them"
        )


def query(database: sqlite3.Connection, text: str | None = None, sort: str = "path") -> list[Row]:
    """Runs for which the expression holds, in the order of a column; from the largest if that has a minus."""
    condition = "1" if text is None else where.parse(text, COLUMNS)
    name, direction = (sort[1:], "DESC") if sort.startswith("-") else (sort, "ASC")
    if name not in COLUMNS:
        raise unknown("column to sort by,", name, COLUMNS)
    names = ", ".join(f'"{column}"' for column in COLUMNS)
    sql = f'SELECT {names} FROM runs WHERE {condition} ORDER BY "{name}" {direction}, condition, seed'
    return [
        {
            key: bool(value) if COLUMNS[key] is bool else value
            for key, value in zip(COLUMNS, values, strict=True)
        }
        for values in database.execute(sql)
    ]


def unreadable(database: sqlite3.Connection) -> dict[str, str]:
    """Directories that could not be read, and why."""
    return dict(database.execute("SELECT path, reason FROM unreadable ORDER BY path"))
