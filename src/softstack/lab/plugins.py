"""Tasks, memories and controllers from files of your own, known to every command and every worker.

A plugin is a Python file with any of these, as softstack's own modules have them:

    TASKS = {"repeat": Repeat()}
    MEMORIES = {"register": Register}
    CONTROLLERS = {"mgu": MGU}

It is named by `--plugin FILE.py`, in the environment variable SOFTSTACK_PLUGINS, or as the module of an entry
point in the group `softstack` of an installed package. Workers are sent its source, so that they need not see
the file. A process keeps to one version of a plugin: what is registered stays so.
"""

import hashlib
import importlib
import os
import sys
import traceback
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from softstack.controllers import CONTROLLERS
from softstack.errors import BadInput
from softstack.lab.tasks import TASKS, checking, find
from softstack.memory import MEMORIES

GROUP = "softstack"  # of entry points
VARIABLE = "SOFTSTACK_PLUGINS"  # files, separated as in PATH


class MissingPlugin(BadInput):
    """Something needs a plugin that is not loaded."""


class Registry(NamedTuple):
    kind: str  # as a Condition calls it
    entries: dict[str, Any]


REGISTRIES = {
    "TASKS": Registry("task", TASKS),
    "MEMORIES": Registry("memory", MEMORIES),
    "CONTROLLERS": Registry("controller", CONTROLLERS),
}


class Plugin(NamedTuple):
    name: str  # of the file without .py, or of the entry point
    path: str  # of the file, or the module that the entry point names
    digest: str  # of the source


class Source(NamedTuple):
    """A plugin as it is sent to a worker."""

    name: str
    path: str
    content: bytes | None  # None: an installed module, which the worker has to have


class _Record(NamedTuple):
    source: Source
    names: set[tuple[str, str]]  # what it registered: ("task", "repeat")


_plugins: dict[Plugin, _Record] = {}


def load_all(paths: Iterable[Path] = ()) -> None:
    """Those of installed packages, those of the environment, and those at `paths`."""
    for point in sorted(metadata.entry_points(group=GROUP)):
        _install(Source(point.name, point.value, None))
    from_environment = [Path(path) for path in os.environ.get(VARIABLE, "").split(os.pathsep) if path]
    for path in [*from_environment, *paths]:
        load(path)


def load(path: Path | str) -> Plugin:
    """Register what a file holds. A file that was loaded before stays as it was."""
    path = Path(path).resolve()
    if path.suffix != ".py":
        raise BadInput(f"the plugin {path} must be a Python file, FILE.py")
    return _install(Source(path.stem, str(path), path.read_bytes()))


def sources() -> list[Source]:
    """The plugins of this process, to be sent to workers."""
    return [record.source for record in _plugins.values()]


def receive(sent: Sequence[Source]) -> None:
    """In a worker: load what the driver has loaded."""
    for source in sent:
        try:
            _install(source)
        except BadInput as error:
            raise BadInput(f"a worker cannot use a plugin of the driver: {error}") from None


def needed(task: str, memory: str, controller: str) -> list[Plugin]:
    """The plugins that a condition with these names depends on."""
    names = {("task", task), ("memory", memory), ("controller", controller)}
    return [plugin for plugin, record in _plugins.items() if names & record.names]


def require(condition: Mapping[str, Any], recorded: Iterable[Mapping[str, Any]], where: str) -> None:
    """Refuse a run that names what nobody knows here, if a plugin is recorded with it that is not loaded."""
    loaded = {plugin.name for plugin in _plugins}
    places = [str(plugin["path"]) for plugin in recorded if plugin["name"] not in loaded]
    names = {kind: condition.get(kind, "") for kind, _ in REGISTRIES.values()}
    for kind, name in names.items() if places else ():
        if not _known(kind, name):
            files = " ".join(f"--plugin {place}" for place in places if place.endswith(".py"))
            modules = ", ".join(place for place in places if not place.endswith(".py"))
            advice = [f"give {files}"] * bool(files) + [f"install the package of {modules}"] * bool(modules)
            raise MissingPlugin(f"{where} needs the {kind} {name!r} of a plugin: {' and '.join(advice)}")


def changed(recorded: Iterable[Mapping[str, Any]]) -> list[str]:
    """The files of plugins that a run recorded, and of which another version is loaded, or another plugin."""
    digests = {plugin.digest for plugin in _plugins}
    return [str(plugin["path"]) for plugin in recorded if plugin["digest"] not in digests]


def _known(kind: str, name: Any) -> bool:
    if kind == "task":
        try:
            return bool(find(name))  # it may be the text of a machine
        except BadInput:
            return False
    return any(name in entries for other, entries in REGISTRIES.values() if other == kind)


def _install(source: Source) -> Plugin:
    module = _imported(source) if source.content is None else None
    content = source.content or (Path(module.__file__).read_bytes() if module and module.__file__ else b"")
    plugin = Plugin(source.name, source.path, hashlib.sha256(content).hexdigest())
    for other in _plugins:
        if other.name == plugin.name and other.digest == plugin.digest:
            return other
        if other.name == plugin.name and other.path == plugin.path:
            raise BadInput(f"{plugin.path} has changed since this process loaded it: start the process anew")
        if other.name == plugin.name:
            raise BadInput(f"{other.path} and {plugin.path} are two plugins called {plugin.name}: rename one")
    contents = checked(module or _executed(source.name, source.path, content), f"the plugin {source.path}")
    for attribute, entries in contents.items():
        REGISTRIES[attribute].entries.update(entries)
    names = {(REGISTRIES[attribute].kind, name) for attribute in contents for name in contents[attribute]}
    _plugins[plugin] = _Record(source, names)
    return plugin


def _imported(source: Source) -> ModuleType:
    try:
        return importlib.import_module(source.path)
    except Exception as error:
        raise _failed(f"the plugin {source.name!r}, which is the module {source.path},", error) from None


def _executed(name: str, path: str, content: bytes) -> ModuleType:
    """A module from source, which a worker may have no file for. Its name must be that of no other module."""
    module = ModuleType(f"softstack_plugin_{name}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # where dataclasses and pickle look for it
    try:
        exec(compile(content, path, "exec"), module.__dict__)
    except Exception as error:
        del sys.modules[module.__name__]
        raise _failed(f"the plugin {path}", error, path) from None
    return module


def _failed(what: str, error: Exception, path: str = "") -> BadInput:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    if isinstance(error, SyntaxError):
        lines, reason = [error.lineno], error.msg
    else:
        reason = str(error)
    line = f", line {lines[-1]}" if lines else ""
    return BadInput(f"{what} cannot be loaded ({type(error).__name__}: {reason}{line})")


def checked(module: ModuleType, where: str) -> dict[str, dict[str, Any]]:
    """What a plugin wants to register, or what is wrong with that. Nothing is registered yet."""
    contents = {
        attribute: getattr(module, attribute) for attribute in REGISTRIES if hasattr(module, attribute)
    }
    if not any(contents.values()):
        raise BadInput(f"{where} registers nothing: give it a dictionary {' or '.join(REGISTRIES)}")
    for attribute, entries in contents.items():
        kind, registry = REGISTRIES[attribute]
        if not isinstance(entries, dict) or entries is registry:
            raise BadInput(f'{attribute} of {where} must be a dictionary of its own, {{"name": {kind}}}')
        for name, entry in entries.items():
            if not isinstance(name, str) or not (name.isidentifier() and name.isascii()):
                raise BadInput(
                    f"{name!r} cannot be the name of a {kind} in {where}: "
                    "use letters, digits and _, and begin with a letter"
                )
            if name in registry and registry[name] is not entry:
                raise BadInput(f"{where} has a {kind} {name!r}, but there is one of that name: rename yours")
            if kind == "task":
                _check_task(name, entry, where)
    return contents


def _check_task(name: str, task: Any, where: str) -> None:
    if isinstance(task, type):
        raise BadInput(f"the task {name!r} of {where} is a class: give an instance, {task.__name__}()")
    checking.check(task, f"the task {name!r} of {where}")
    if task.name != name:
        raise BadInput(f"the task {name!r} of {where} says that its name is {task.name!r}: call it the same")
