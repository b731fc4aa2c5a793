"""The override tables that releases of a tree carry in, the one of its platform out.

Only the comment line above it tells a table from a release's own post-renderers, as `render` itself has it.
"""

from __future__ import annotations

from render.committed import TABLE_COMMENT
from render.diff_nodes import meaning
from render.flux.overrides import Entry, Table
from render.importing.convert import replaced, without
from render.importing.draft import Draft
from render.yaml.source import Mapping, Sequence


def take_tables(drafts: list[Draft]) -> Sequence | None:
    """Take the tables out of the releases, and return the platform's; None when there is none."""
    found = {id(draft): table for draft in drafts if draft.is_release and (table := _table_of(draft)) is not None}
    if not found:
        return None
    whole = max(found.values(), key=lambda table: len(table.items))
    entries = [meaning(item) for item in whole.items]
    for draft in drafts:
        if not draft.is_release:
            continue
        table = found.get(id(draft))
        if table is None:
            draft.emit = "none"
            continue
        carried = [meaning(item) for item in table.items]
        if carried != [entry for entry in entries if entry in carried]:
            # Another table: it stays a post-renderer of the release.
            continue
        if carried != entries:
            draft.emit = "declared"
        _take_out(draft, table)
    return whole


def _table_of(draft: Draft) -> Sequence | None:
    if draft.main.file.label is None:
        return None
    renderers = draft.spec.get("postRenderers")
    last = renderers.items[-1] if type(renderers) is Sequence and renderers.items else None
    kustomize = last.get("kustomize") if type(last) is Mapping else None
    listed = kustomize.get("images") if type(kustomize) is Mapping else None
    if type(last) is not Mapping or type(listed) is not Sequence:
        return None
    above = draft.main.file.source.snippet(last.line - 1)
    return listed if above.strip() == f"# {TABLE_COMMENT}" else None


def _take_out(draft: Draft, table: Sequence) -> None:
    renderers = draft.spec.get("postRenderers")
    assert type(renderers) is Sequence
    draft.table = table
    kept = renderers.items[:-1]
    draft.spec = replaced(draft.spec, "postRenderers", Sequence(kept, renderers.line, renderers.column))
    if not kept:
        draft.spec = without(draft.spec, "postRenderers")
    if draft.spec.text("postRenderStrategy") == "separate":
        # What a release with a table gets by itself.
        draft.spec = without(draft.spec, "postRenderStrategy")


def table_of(entries: Sequence | None) -> Table:
    """Return a table that can be applied."""
    made = []
    for one in entries.items if entries is not None else ():
        if type(one) is Mapping:
            parts = (one.text(name) or "" for name in ("name", "newName", "newTag", "digest"))
            made.append(Entry(*parts))
    return Table(made)
