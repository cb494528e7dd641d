"""ROOT/index.sqlite: what the run directories hold, in a form that can be asked. It only mirrors them.

Only who asks writes it, so that no run depends on it. It is brought up to date before each question, and made
anew where it cannot be read.
"""

import contextlib
import os
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

FILE = "index.sqlite"
COLUMNS: dict[str, type] = {
    "condition": str,
    "seed": int,
    "dev": float,
    "test": float,
    "epochs": int,
    "dev_loss": float,  # empty where it was not written down, as in softstack 0.1
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
                    about = entry.stat()
                    with contextlib.suppress(OSError):
                        about = os.stat(os.path.join(entry.path, "result.json"))
                    stamp = f"{about.st_ino} {about.st_mtime_ns} {about.st_size}"
                    yield str((folder / entry.name).relative_to(root)), stamp


def row(root: Path, path: str) -> Row:
    """What is asked of a run. One that needs a plugin is listed without it: it says all of this by itself."""
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
        **{field.name: facts[field.name] for field in fields(Condition)},
        "condition": path.split("/")[-2],
        "numerics": NUMERICS,
        "seconds": float(source["seconds"]),
        "commit": str(source["commit"]),
        "device": str(source["device"]),
        "path": path,
    }


def refresh(root: Path, database: sqlite3.Connection) -> None:
    """Bring the index up to date: what is new or changed is read, what is gone is forgotten."""
    stamps = dict(places(root))
    with database:
        database.execute("BEGIN IMMEDIATE")
        known = dict(database.execute("SELECT path, stamp FROM runs"))
        old = [(path,) for path, stamp in known.items() if stamps.get(path) != stamp]
        database.executemany("DELETE FROM runs WHERE path = ?", old)
        database.execute("DELETE FROM unreadable")  # a task that one of them needs may be known now
        for path, stamp in stamps.items():
            if known.get(path) != stamp:
                try:
                    values = {**row(root, path), "stamp": stamp}
                    marks, names = ", ".join("?" * len(values)), ", ".join(f'"{name}"' for name in values)
                    database.execute(f"INSERT INTO runs ({names}) VALUES ({marks})", tuple(values.values()))
                except (KeyError, ValueError, TypeError, OverflowError, OSError) as error:  # BadInput too
                    database.execute("INSERT INTO unreadable VALUES (?, ?, ?)", (path, str(error), stamp))


def connected(place: Path | str) -> sqlite3.Connection:
    """An index that can be used, empty if it was not there. What is no index of ours is an error."""
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
    with contextlib.closing(_usable(root, say)) as database:
        yield database


def _usable(root: Path, say: Callable[[str], None]) -> sqlite3.Connection:
    if not os.access(root, os.W_OK):
        return _in_memory(root)
    try:
        database = connected(root / FILE)
        refresh(root, database)
        return database
    except sqlite3.Error as error:
        say(f"{root / FILE} cannot be used ({error}): it is made anew from the run directories")
    try:
        rebuild(root)
        return connected(root / FILE)
    except (sqlite3.Error, OSError) as error:
        say(f"{root / FILE} cannot be written ({error}): the run directories are read for this once")
        return _in_memory(root)


def _in_memory(root: Path) -> sqlite3.Connection:
    database = connected(":memory:")
    refresh(root, database)
    return database


def rebuild(root: Path) -> tuple[int, int]:
    """Make the index anew from the run directories alone: how many can be read, and how many cannot."""
    _check(root)
    with tempfile.TemporaryDirectory(prefix=".index-", dir=root) as folder:
        fresh = Path(folder) / FILE
        with contextlib.closing(connected(fresh)) as database:
            refresh(root, database)
            counts = [
                database.execute(f"SELECT COUNT(*) FROM {t}").fetchone()[0] for t in ("runs", "unreadable")
            ]
        for name in (FILE, f"{FILE}-journal", f"{FILE}-wal"):  # an old journal must not meet a new index
            (root / name).unlink(missing_ok=True)
        fresh.rename(root / FILE)
    return counts[0], counts[1]


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
