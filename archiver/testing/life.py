"""One life of an agent: find it, let it run, and tell how it went."""

from __future__ import annotations

import asyncio
import atexit
import faulthandler
import importlib
import importlib.util
import inspect
import math
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from archiver import jsonio
from archiver.errors import ArchiverError, InputNotFoundError, UsageError
from archiver.testing.events import Events, install
from archiver.testing.place import Place, World
from archiver.testing.points import Point

_write = os.write


def live(order: dict[str, Any], *, grace: float) -> None:
    """Run the agent of the order in this process, and write its tale: its outcome, its error, what it did.

    Its death is written by `events`. `grace` seconds before its limit a life says where it hangs.
    """
    tempfile.tempdir = None
    sys.path[:] = order["path"]
    sys.argv = [order["agent"]["name"]]
    sys.dont_write_bytecode = True
    signal.alarm(math.ceil(order["timeout"] + 10))  # ends it though whoever should is dead
    faulthandler.dump_traceback_later(max(order["timeout"] - grace, 0.1), file=sys.stderr)
    tale = os.open(order["tale"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
    point = Point(**order["point"]) if order["point"] else None
    events = Events(point, tale)
    world = World(Path(order["journal"]), watch=lambda what: events.seen("act", what))
    place = Place(Path(order["folder"]), Path(order["config"]), world, order["resolve"], order["because"])
    # Registered first, so it runs last: what is done at exit is counted too.
    atexit.register(lambda: _tell(tale, {"counts": events.counts()}))
    if order["watched"]:
        install(events, remote=order["remote"])
    try:
        outcome = jsonio.dumps(run(found(order["agent"]), place))
    except BaseException as error:
        _tell(tale, {"error": _said(error)})
        traceback.print_exception(error.with_traceback(_of_the_agent(error.__traceback__)))
        sys.exit(1)
    _write(tale, b'{"outcome":' + outcome + b"}\n")


def _of_the_agent(trace: TracebackType | None) -> TracebackType | None:
    """The part that begins behind this module, if there is one."""
    inner = trace
    while inner is not None and inner.tb_frame.f_code.co_filename == __file__:
        inner = inner.tb_next
    return inner or trace


def _tell(tale: int, what: dict[str, Any]) -> None:
    _write(tale, jsonio.dumps(what) + b"\n")


def _said(error: BaseException) -> dict[str, Any]:
    name = type(error).__name__
    if not isinstance(error, ArchiverError):
        return {"type": name, "message": str(error), "undecided": None}
    text = f"{error}; {error.remedy}" if error.remedy else str(error)
    undecided = error.details.get("undecided")
    keys = [one["key"] for one in undecided] if isinstance(undecided, list) else None
    return {"type": name, "message": text, "undecided": keys}


def found(agent: dict[str, str]) -> Callable[..., Any]:
    """The function of `lives.Agent`, its module imported now; `InputNotFoundError` where it is none."""
    try:
        value: Any = _module(agent)
        for part in agent["function"].split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError, OSError) as error:
        raise InputNotFoundError(
            f"the agent {agent['name']} cannot be loaded: {error}",
            remedy="name a function of a module that can be imported: module:function, or path.py:function",
        ) from error
    if not callable(value):
        raise InputNotFoundError(f"the agent {agent['name']} is no function")
    found: Callable[..., Any] = value
    return found


def _module(agent: dict[str, str]) -> Any:
    if not agent["file"]:
        return importlib.import_module(agent["module"])
    sys.path.insert(0, str(Path(agent["file"]).parent))
    spec = importlib.util.spec_from_file_location(agent["module"], agent["file"])
    if spec is None or spec.loader is None:
        raise ImportError(f"{agent['file']} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[agent["module"]] = module
    spec.loader.exec_module(module)
    return module


def run(agent: Callable[..., Any], place: Place) -> Any:
    """What the agent returns; one that takes nothing is given nothing, an async one gets a loop."""
    parameters = inspect.signature(agent).parameters
    if len(parameters) > 1:
        raise UsageError(
            "an agent under test takes a Place or nothing", remedy="give the other parameters defaults inside"
        )
    result = agent(place) if parameters else agent()
    return asyncio.run(_awaited(result)) if inspect.isawaitable(result) else result


async def _awaited(result: Any) -> Any:
    return await result
