"""Irreversible effects in all their forms, mixed with replayable ones and with steps."""

from __future__ import annotations

from typing import Any

import archiver
from archiver.testing import Place


def agent(place: Place) -> Any:
    """Orders two things, tags each, mails once and pays once; returns what the world has of it."""
    act = place.world.act

    @archiver.effect("payments.pay", key="pay-{invoice}")
    def pay(invoice: str, cents: int) -> dict[str, Any]:
        return dict(act(f"pay-{invoice}", {"cents": cents}))

    with archiver.run("effects", policy="async", check=place.check) as run:
        for thing in ("desk", "lamp"):
            key = f"order-{thing}"
            with run.effect("shop.order", key=key, arguments={"thing": thing}) as order:
                order.confirm(act(key, {"thing": thing, "number": len(thing)}))
            demand_same(order.result, place, key)
            tag = run.effect("shop.tag", key=f"tag-{thing}", arguments=[thing], replayable=True)
            tag.do(act, f"tag-{thing}", thing, replayable=True)
            run.step(f"count-{thing}", act, f"count-{thing}", len(thing), replayable=True)
        mail = run.effect("mail.send", key="mail", arguments={"to": "ops"})
        demand_same(mail.do(act, "mail", {"to": "ops"}), place, "mail")
        demand_same(pay("4711", 2500), place, "pay-4711")
        run.finish("succeeded")
        results = run.results
    keys = ("order-desk", "tag-lamp", "mail", "pay-4711")
    return {"results": results, **{key: place.world.value(key) for key in keys}}


def demand_same(result: Any, place: Place, key: str) -> None:
    """What is recorded is what happened; of what a person decided on no result is known."""
    if result is not None and result != place.world.value(key):
        raise AssertionError(f"the recorded result of {key} is {result}, not {place.world.value(key)}")
