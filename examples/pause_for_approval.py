"""A run that needs a yes from a person: it saves itself, ends, and goes on once it is told the answer.

    archiver init                                          # once: a store and keys
    python examples/pause_for_approval.py                  # builds, asks, and ends with exit code 7
    python examples/pause_for_approval.py --answer yes     # hours later, on any machine: goes on

Nothing waits in memory meanwhile: a question that takes a weekend costs one file in the store.
"""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

import archiver

ASKED = 7
"""The exit code that says "a person must decide", as that of the `archiver` command does."""
SITE = Path("site.txt")
BUILD = archiver.Step(id="build", title="Build the preview")
DEPLOY = archiver.Step(id="deploy", title="Deploy the preview")


def build() -> dict[str, str]:
    print("build")
    return {"version": "2026.3", "digest": "c0ffee"}


def deploy(version: str) -> str:
    """The outside world: everybody sees it."""
    with SITE.open("a", encoding="utf-8") as site:
        site.write(f"{version}\n")
    return f"https://preview.shop.example/{version}"


def is_deployed(effect: archiver.Effect) -> archiver.Outcome:
    """Killed between the deployment and the note of it, nobody knows, but the site does."""
    versions = SITE.read_text(encoding="utf-8").splitlines() if SITE.is_file() else []
    return "done" if effect.key.removeprefix("deploy ") in versions else "not-done"


def work(answer: str | None) -> int:
    with archiver.run(
        "preview",
        harness="pause-for-approval 1",
        policy=archiver.Policy(floor=0),  # it is small: a real run leaves this out
        check=is_deployed,
    ) as run:
        built = run.step("build", build)
        question = f"Deploy {built['version']} ({built['digest']}) where everybody sees it?"
        if answer is None and not run.finished:
            approval = archiver.Approval(id="deploy", question=question, asked_at=datetime.now(UTC))
            plan = archiver.Plan(completed=(BUILD,), remaining=(DEPLOY,), pending_approvals=(approval,))
            run.pause(phase="waits for approval", plan=plan)
            print(question, "--answer yes or no", sep="\n")
            return ASKED
        if answer == "no" and not run.finished:
            run.finish("cancelled")
            return 0
        call = run.effect(
            "deploy.preview", key=f"deploy {built['version']}", arguments={"version": built["version"]}
        )
        print(call.do(deploy, built["version"]))
        run.checkpoint(phase="deployed", plan=archiver.Plan(completed=(BUILD, DEPLOY)))
        run.finish("succeeded")
    return 0


def main() -> None:
    options = argparse.ArgumentParser(description="A run that waits for a person without running.")
    options.add_argument("--answer", choices=("yes", "no"), help="what the person says")
    sys.exit(work(options.parse_args().answer))


if __name__ == "__main__":
    main()
