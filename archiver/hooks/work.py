"""What is done about an event, in a process that nobody waits for.

What a save needs is loaded only when there is one: most events of a quick session need none.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from archiver.config import load
from archiver.config.homes import state_home
from archiver.errors import UsageError
from archiver.hooks import event as events
from archiver.hooks import log, turns
from archiver.hooks.event import Event
from archiver.safetext import one_line, shorten

if TYPE_CHECKING:
    from archiver.config import Settings


_SHOWN: Final = 300


def work(arguments: list[str], data: bytes, at: float) -> None:
    """Save the session of an event; what goes wrong is a line of the log."""
    name = session = None
    try:
        event = events.read(data, at)
        name, session = event.name, str(event.transcript)
        config = _config(arguments)
        settings = load(config)
        home = state_home() / "hooks"
        saves = turns.Turns(home, event.transcript, str(config or ""))
        saves.take(event, settings.run.floor, partial(_save, settings))
        turns.forget_old(home)
    except events.NothingThereError as error:  # a session in which nothing was said has no file
        log.write(*_named(arguments, data, name, session), "nothing", message=str(error))
    except Exception as error:  # there is nobody else to hear of it
        log.failed(*_named(arguments, data, name, session), error)


def _named(
    arguments: list[str], data: bytes, name: str | None, session: str | None
) -> tuple[str | None, str | None]:
    """What an event that was not taken says of itself, its path cut and free of credentials."""
    if name is not None:
        return name, session
    try:
        name, path = events.said(data)
        return name, _cleaned(arguments, path) if path else None
    except Exception:  # what cannot be searched for credentials is not written down
        return name, None


def _cleaned(arguments: list[str], path: str) -> str:
    from archiver.redact import Redactor, new_key
    from archiver.setup.opening import chosen_rules, known_values

    settings = load(_config(arguments))
    redactor = Redactor.load(new_key(), exact=known_values(settings), chosen=chosen_rules(settings))
    return shorten(one_line(redactor.text(path)), _SHOWN)  # cut last, lest a part of a secret is left


def _config(arguments: list[str]) -> Path | None:
    """The file that the hook's command names."""
    match arguments:
        case []:
            return None
        case ["--config", file]:
            return Path(file)
        case [option] if option.startswith("--config="):
            return Path(option.removeprefix("--config="))
    raise UsageError("the command of the hook has words that are not known", remedy="install the hooks again")


def _save(settings: Settings, event: Event) -> None:
    """One save; an error of this one does not keep the next from being tried."""
    try:
        from archiver.hooks.saves import save_session

        save_session(settings, event)
    except Exception as error:  # as above
        log.failed(event.name, str(event.transcript), error)
