"""Drafts and what they render to in, the outcome of each out: what came back, what was lost, and what is noted."""

from __future__ import annotations

from render.importing.deciding import Decisions
from render.importing.draft import GIVEN_UP, Draft
from render.importing.fidelity import (
    Rendered,
    compare_object,
    compare_policies,
    compare_release,
    compare_source,
)
from render.importing.result import Imported, Outcome
from render.redact import redact_line


class Proof:
    """Compares every object that was read with what is rendered in its place."""

    def __init__(self, decided: Decisions, rendered: Rendered, made: Imported) -> None:
        self.decided = decided
        self.rendered = rendered
        self.made = made

    def run(self) -> None:
        """Compare every object with what is rendered for it."""
        if self.made.is_blocked:
            return
        for draft in self.decided.drafts:
            outcome = Outcome(
                draft.main.file.source.place(draft.main.root),
                str(draft.main),
                draft.service,
                draft.file,
                equal=False,
                is_release=draft.is_release,
            )
            self.made.outcomes.append(outcome)
            outcome.notes += draft.notes
            if draft.level >= GIVEN_UP:
                outcome.lost.append("spec")
                outcome.notes.append(f"not imported: {draft.reason}")
                continue
            outcome.notes += draft.told
            outcome.comments = [(line, redact_line(text)) for line, text in sorted(set(draft.dropped))]
            self._compare(draft, outcome)

    def _compare(self, draft: Draft, outcome: Outcome) -> None:
        namespace = draft.home
        renamed = {}
        for image in draft.images:
            if image.update is not None and image.policy is not None:
                name = f"{draft.service}-{image.key}" if image.key else draft.service
                renamed[":".join(image.policy)] = f"{self.decided.namespace}:{name}"
        differing = 0
        if draft.is_release:
            found = compare_release(draft, self.rendered, namespace, renamed)
            outcome.lost += [*draft.lost, *(one for one in found.lost if not _is_told(one, draft.lost))]
            outcome.notes += found.notes
            differing += len(found.notes)
        elif draft.workload is not None:
            for one in (draft.main, *draft.in_workload):
                found = compare_object(one, self.rendered, namespace, renamed, draft.known_policies)
                outcome.lost += found.lost
                outcome.notes += found.notes
                differing += len(found.notes)
        for extra in draft.extras:
            found = compare_object(extra, self.rendered, namespace, renamed, draft.known_policies)
            outcome.lost += found.lost
            outcome.notes += found.notes
        if draft.settled is not None and draft.settled.is_rendered and draft.use is not None:
            assert draft.use.source is not None
            found = compare_source(draft.use.source, self.rendered, draft.settled.identity, draft.known_policies)
            outcome.lost += found.lost
            outcome.notes += found.notes
        found = compare_policies(draft, self.rendered, self.decided.automation, self.decided.namespace)
        outcome.lost += found.lost
        outcome.notes += found.notes
        outcome.lost = list(dict.fromkeys(outcome.lost))
        outcome.notes = list(dict.fromkeys(outcome.notes))
        outcome.equal = not outcome.lost and not differing
        if outcome.lost:
            more = f" and {len(outcome.lost) - 1} more" if len(outcome.lost) > 1 else ""
            self.made.diagnostics.append(
                draft.main.file.source.fault(
                    "R905",
                    draft.main.root,
                    f"`{draft.main}` loses `{outcome.lost[0]}`{more}",
                    cause="what is rendered from the definition does not say it",
                    hint="see the report, and add to the definition what is missing",
                )
            )


def _is_told(path: str, lost: list[str]) -> bool:
    """Whether a lost path lies in one that is told already."""
    return any(path == one or path.startswith((f"{one}.", f"{one}[")) for one in lost)
