"""A channel and the current tag in, the tag filter and policy of an ImagePolicy out.

A derived pattern is anchored and admits the current tag's form alone. What semver cannot order as it stands is brought
into three numbers and a pre-release by `extract`, whose references have no braces because Flux's variable substitution
would take those for its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from render.flux.regex import quote
from render.flux.semver import Constraint
from render.flux.tagform import Form, Prerelease, is_hash, parse_form, varies, words
from render.structs import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal, TypeAlias

Kind: TypeAlias = 'Literal["semver", "alphabetical", "numerical"]'

KINDS: tuple[Kind, ...] = ("semver", "alphabetical", "numerical")
"""In the order in which the controller looks for them."""
CHANNELS = ("stable", "prerelease", "calver", "build", "digest", "custom")
EXACT_BELOW = 2**53
"""Numbers from here on are not exact in the 64-bit floats that numerical policies compare."""

_NUMBER = "[0-9]+"
_THREE = rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
# In the pre-release part of a version a number must not start with a zero.
_COUNT = "0|[1-9][0-9]*"
_FAMILIES = (("alpha", "beta", "rc"), ("ALPHA", "BETA", "RC"))
_PYTHON_FAMILY = ("a", "b", "rc")


class DeriveError(ValueError):
    """A tag from which a channel cannot derive a policy; the text says which channel or policy to write instead."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(f"{reason}; {advice}")
        self.reason = reason
        self.advice = advice


class _Refusal(Exception):  # noqa: N818  # it never leaves this module: `derive` adds the advice
    """Why a tag has not the form of a channel."""


@struct(frozen=True)
class Derived:
    """What an ImagePolicy says about tags."""

    channel: str
    pattern: str | None
    extract: str | None
    policy_kind: Kind
    policy_range: str | None = None
    """Of a semver policy."""
    order: str | None = None
    """Of the other two: `asc` or `desc`."""
    notes: tuple[str, ...] = ()
    """What the policy leaves out although a reader might expect it."""

    @property
    def policy(self) -> dict[str, dict[str, str]]:
        """`ImagePolicy.spec.policy`."""
        if self.policy_kind == "semver":
            return {"semver": {"range": self.policy_range or ""}}
        return {self.policy_kind: {"order": self.order or "asc"}}

    @property
    def filter_tags(self) -> dict[str, str] | None:
        """`ImagePolicy.spec.filterTags`, None if there is nothing to filter by."""
        fields = {"pattern": self.pattern, "extract": self.extract}
        return {name: text for name, text in fields.items() if text} or None


def derive(
    channel: str,
    tag: str,
    range_: str | None = None,
    *,
    policy: Mapping[str, Any] | None = None,
    filter_tags: Mapping[str, Any] | None = None,
) -> Derived:
    """Derive the policy of a channel from the current tag.

    `range_` belongs to the channels `stable` and `prerelease`, which require it, and to `calver`; `policy` and
    `filter_tags`, in the form of the ImagePolicy fields, to `custom`. Raise DeriveError where the tag has not the
    channel's form or an argument is missing or out of place, and RangeError for a range that does not parse.
    """
    if channel == "custom":
        return _custom(policy, filter_tags, range_)
    if channel not in CHANNELS:
        raise DeriveError(f"there is no channel `{channel}`", f"write one of `{'`, `'.join(CHANNELS)}`")
    if policy is not None or filter_tags is not None:
        raise DeriveError(f"channel `{channel}` derives policy and filter itself", "write `channel: custom` for these")
    if channel in ("build", "digest") and range_ is not None:
        raise DeriveError(f"channel `{channel}` has no semver policy, so no range", "remove `range`")
    try:
        pattern, extract, rewritten, notes = _SHAPES[channel](tag)
    except _Refusal as refusal:
        raise DeriveError(str(refusal), _advice(channel, tag)) from None
    if channel in ("build", "digest"):
        kind: Kind = "numerical" if channel == "build" else "alphabetical"
        return Derived(channel, pattern, extract, kind, order="asc")
    if range_ is None and channel != "calver":
        raise DeriveError(f"channel `{channel}` needs a range", f"write, say, `range: {_major(tag)}.x`")
    constraint = Constraint.parse("*" if range_ is None else range_)
    text = constraint.with_prereleases() if rewritten else constraint.text
    return Derived(channel, pattern, extract, "semver", text, notes=notes)


def suggest_filter(tag: str) -> str:
    """Return, as text for a hint, a tag filter that a tag passes: that of the first channel which takes the tag."""
    for shape in _SHAPES.values():
        try:
            pattern, extract, _, _ = shape(tag)
        except _Refusal:
            continue
        return _filter_text(pattern, extract)
    raise AssertionError("channel `digest` takes every tag")


def _filter_text(pattern: str, extract: str | None) -> str:
    return f"`filterTags: {{pattern: '{pattern}'" + (f", extract: '{extract}'" if extract else "") + "}`"


def _custom(policy: Mapping[str, Any] | None, filter_tags: Mapping[str, Any] | None, range_: str | None) -> Derived:
    if range_ is not None:
        raise DeriveError("channel `custom` has its range in `policy`", "write `policy: {semver: {range: …}}`")
    kind = next((kind for kind in KINDS if (policy or {}).get(kind) is not None), None)
    if policy is None or kind is None:
        raise DeriveError("channel `custom` needs a policy", f"write `policy` with one of `{'`, `'.join(KINDS)}`")
    tags = filter_tags or {}
    pattern, extract = tags.get("pattern") or None, tags.get("extract") or None
    if kind == "semver":
        return Derived("custom", pattern, extract, kind, policy_range=policy[kind].get("range") or "")
    return Derived("custom", pattern, extract, kind, order=policy[kind].get("order") or "asc")


Shape = tuple[str, str | None, bool, tuple[str, ...]]
"""Pattern, extract, whether the extract turns a part of every tag into a pre-release, and notes."""


def _stable(tag: str) -> Shape:
    form = _version_form("stable", tag)
    if form.prerelease is not None:
        raise _Refusal(f"`{tag}` is a pre-release")
    return _normalised(form.prefix, form.numbers, r"\.", form.suffix, form.counter)


def _calver(tag: str) -> Shape:
    match = re.fullmatch(r"v?([0-9]+)(?:([-_])[0-9]+(?:\2[0-9]+)*(|[-._+][A-Za-z].*)|(?![-_][0-9]).*|[-_][0-9]+)", tag)
    if match is None or not re.fullmatch(r"(?:19|20)[0-9]{2}(?:[0-9]{2}){0,2}|[0-9]{2}", match[1]):
        raise _Refusal(f"`{tag}` does not start with a year")
    if match[2] is None:
        form = _version_form("calver", tag)
        if form.prerelease is not None:
            raise _Refusal(f"`{tag}` is a pre-release")
        return _normalised(form.prefix, form.numbers, r"\.", form.suffix, form.counter)
    if varies(match[3]):
        raise _Refusal(f"the end of `{tag}` changes from tag to tag")
    prefix, dated = ("v", tag[1:]) if tag[0] == "v" else ("", tag)
    return _normalised(prefix, dated.removesuffix(match[3]).split(match[2]), match[2], match[3], "")


def _version_form(channel: str, tag: str) -> Form:
    form = None if is_hash(tag) else parse_form(tag)
    if form is None:
        raise _Refusal(f"`{tag}` is no version")
    if form.prefix not in ("", "v"):
        raise _Refusal(f"channel `{channel}` knows no prefix but `v`, and `{tag}` has `{form.prefix}`")
    if varies(form.suffix):
        raise _Refusal(f"the end of `{tag}` changes from tag to tag")
    return form


def _normalised(prefix: str, numbers: Sequence[str], separator: str, suffix: str, counter: str) -> Shape:
    """Return the shape that admits these numbers and this suffix: three numbers stay, others are rewritten."""
    tail = f"{quote(suffix)}$"
    if len(numbers) == 3 and not counter and separator == r"\.":
        if not suffix:
            return f"^{prefix}{_THREE}{tail}", None, False, ()
        return f"^{prefix}(?P<v>{_THREE}){tail}", "$v", False, ()
    names = "abcdefghijklmnopqrstuvwxyz"[: len(numbers) + bool(counter)]
    head = min(len(numbers), 3)
    groups = [f"(?P<{name}>{_NUMBER})" for name in names[:head]]
    groups += [_counter(name, digits) for name, digits in zip(names[head:], numbers[head:], strict=False)]
    if counter:
        tail = f"{quote(suffix)}{_counter(names[-1], counter)}$"
    version = ".".join([*(f"${name}" for name in names[:head]), "0", "0"][:3])
    rest = ".".join(f"${name}" for name in names[head:])
    return f"^{prefix}{separator.join(groups)}{tail}", f"{version}-{rest}" if rest else version, bool(rest), ()


def _counter(name: str, digits: str) -> str:
    """Return a group for a number that becomes part of a pre-release; leading zeros stay outside of it."""
    return f"0*(?P<{name}>{_NUMBER})" if _zero_led(digits) else f"(?P<{name}>{_COUNT})"


def _zero_led(digits: str) -> bool:
    return len(digits) > 1 and digits[0] == "0"


def _prerelease(tag: str) -> Shape:
    form = _version_form("prerelease", tag)
    if len(form.numbers) > 3 or form.counter:
        raise _Refusal(f"`{tag}` has more numbers than semver keeps apart from a pre-release")
    names = "abc"[: len(form.numbers)]
    core = r"\.".join(f"(?P<{name}>{_NUMBER})" for name in names)
    version = ".".join([*(f"${name}" for name in names), "0", "0"][:3])
    tail = f"{quote(form.suffix)}$"
    pre = form.prerelease or Prerelease("-", "rc", glued=False, numbers=("1",))
    labels = _labels(pre)
    if pre.glued or pre.lead != "-" or any(map(_zero_led, pre.numbers)):
        # A template cannot leave out its hyphen, so that what has to be rewritten has to be there.
        numbered = r"\.".join(_counter(name, digits) for name, digits in zip("nopq", pre.numbers, strict=False))
        dot = r"\." if pre.numbers and not pre.glued else ""
        rest = "".join(f".${name}" for name in "nopq"[: len(pre.numbers)])
        note = "releases are left out, because pre-releases written like this one are ordered by a rewritten tag"
        pattern = f"^{form.prefix}{core}{quote(pre.lead)}(?P<l>{labels}){dot}{numbered}{tail}"
        return pattern, f"{version}-$l{rest}", True, (note,)
    mark = f"-(?:{labels})" + rf"\.(?:{_COUNT})" * len(pre.numbers)
    if len(names) < 3:
        return f"^{form.prefix}{core}(?P<p>{mark})?{tail}", f"{version}$p", False, ()
    if form.suffix:
        return f"^{form.prefix}(?P<v>{_THREE}(?:{mark})?){tail}", "$v", False, ()
    return f"^{form.prefix}{_THREE}(?:{mark})?{tail}", None, False, ()


def _labels(pre: Prerelease) -> str:
    """Return the labels of one family, whose alphabetical order is their order in time, as alternatives."""
    families = (_PYTHON_FAMILY, *_FAMILIES) if pre.glued and not pre.lead else _FAMILIES
    family = next((family for family in families if pre.label in family), (pre.label,))
    return "|".join(family)


def _build(tag: str) -> Shape:
    dated = re.fullmatch(r"(.*?)((?:19|20)[0-9]{6})([-_.T])([0-9]{6}|[0-9]{4})(Z?)((?:[-_.].*)?)", tag)
    if dated is not None:
        before, after = _around(tag, dated[1]), _around(tag, dated[6])
        time = f"(?P<t>[0-9]{{{len(dated[4])}}})"
        return f"^{before}(?P<d>[0-9]{{8}}){quote(dated[3])}{time}{dated[5]}{after}$", "$d$t", False, ()
    numbers = list(re.finditer(r"(?<![0-9A-Za-z])[0-9]+(?![0-9A-Za-z])", tag))
    numbers = numbers or list(re.finditer(r"(?<=[A-Za-z])[0-9]+(?![0-9A-Za-z])", tag))
    if len(numbers) != 1 or is_hash(tag):
        raise _Refusal(f"`{tag}` does not hold exactly one number")
    before, after = _around(tag, tag[: numbers[0].start()]), _around(tag, tag[numbers[0].end() :])
    number = _build_number(tag, numbers[0][0])
    if not before and not after:
        return f"^{number}$", None, False, ()
    return f"^{before}(?P<n>{number}){after}$", "$n", False, ()


def _build_number(tag: str, digits: str) -> str:
    """Return a pattern for numbers like this one, none of which reaches 2^53."""
    width = len(digits)
    if width > 16 or (width == 16 and digits[0] == "9"):
        raise _Refusal(f"the number in `{tag}` may reach 2^53, where a numerical policy takes neighbours for equal")
    if width == 16:
        return "[0-8][0-9]{15}"
    # A date, and a time in seconds or milliseconds, keep their width: another unit would win for ever.
    timestamp = (width in (8, 12, 14) and digits[:2] in ("19", "20")) or (width in (10, 13) and digits[0] == "1")
    return f"[0-9]{{{width}}}" if timestamp else "[0-9]{1,15}"


def _around(tag: str, text: str) -> str:
    """Return the pattern of what stands beside a build number: literal, but for commit hashes."""
    if any(re.search("[0-9]", word) and not is_hash(word) for word in words(text)):
        raise _Refusal(f"`{tag}` does not hold exactly one number")
    return _literal(text)


def _literal(text: str) -> str:
    """Return a pattern for the text in which commit hashes stand for any."""
    hashes = {word: "g[0-9a-f]+" if word[0] == "g" else "[0-9a-f]+" for word in words(text) if is_hash(word)}
    return "".join(hashes.get(word) or quote(word) for word in words(text))


def _digest(tag: str) -> Shape:
    return f"^{quote(tag)}$", None, False, ()


_SHAPES: Mapping[str, Callable[[str], Shape]] = {
    "stable": _stable,
    "prerelease": _prerelease,
    "calver": _calver,
    "build": _build,
    "digest": _digest,
}


def _major(tag: str) -> int:
    form = parse_form(tag)
    return int(form.numbers[0]) if form else 1


def _advice(channel: str, tag: str) -> str:
    """Say what to write for a tag that a channel refused: another channel, or a whole custom policy."""
    for other in ("stable", "prerelease", "calver", "build"):
        if other == channel:
            continue
        try:
            _SHAPES[other](tag)
        except _Refusal:
            continue
        return f"write `channel: {other}`"
    if re.search("[0-9]", tag) is None:
        return "write `channel: digest` to follow the digest of this tag"
    form = parse_form(tag)
    if form is not None and len(form.numbers) > 1:
        pattern, extract, rewritten = _custom_version(form, tag)
        range_ = f"{_major(tag)}.x-0" if rewritten else f"{_major(tag)}.x"
        return _custom_advice(f"semver: {{range: {range_}}}", pattern, extract)
    times = [word for word in words(tag) if word.isdigit() and 10 <= len(word) <= 15]
    if len(times) == 1:
        before, after = tag.split(times[0])
        pattern = f"^{_literal(before)}(?P<n>{_build_number(tag, times[0])}){_literal(after)}$"
        return _custom_advice("numerical: {order: asc}", pattern, "$n")
    if any(map(is_hash, words(tag))):
        return "tag images `<time>-<hash>` and write `channel: build`, because a commit hash has no order"
    digits = re.sub(r"[0-9]+", lambda run: f"[0-9]{{{len(run[0])}}}", quote(tag))
    return _custom_advice("alphabetical: {order: asc}", f"^{digits}$", None)


def _custom_advice(policy: str, pattern: str, extract: str | None) -> str:
    return f"write `channel: custom` with `policy: {{{policy}}}` and {_filter_text(pattern, extract)}"


def _custom_version(form: Form, tag: str) -> tuple[str, str, bool]:
    """Return pattern and extract for a version in any surroundings; numbers after it order equal versions."""
    start = len(form.prefix) + len(form.version)
    tail, names = [], iter("defghijklmnopqrstuvwxyz")
    counters = []
    for word in words(tag[start:]):
        if word.isdigit():
            counters.append(next(names))
            tail.append(_counter(counters[-1], word))
        else:
            tail.append(_literal(word))
    groups = [f"(?P<{name}>{_NUMBER})" for name in "abc"[: len(form.numbers)]]
    for digits in form.numbers[3:]:
        counters.append(next(names))
        groups.append(_counter(counters[-1], digits))
    version = ".".join([*(f"${name}" for name in "abc"[: len(form.numbers)]), "0"][:3])
    rest = ".".join(f"${name}" for name in sorted(counters))
    core = r"\.".join(groups)
    return f"^{quote(form.prefix)}{core}{''.join(tail)}$", f"{version}-{rest}" if rest else version, bool(rest)
