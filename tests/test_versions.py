from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from render.flux.versions import (
    MINORS,
    FluxVersion,
    VersionError,
    hooks,
    served_versions,
    strict_substitution,
)


@pytest.mark.parametrize(
    ("text", "minor", "patch"), [("2.7", 7, -1), ("2.9", 9, -1), ("2.8.0", 8, 0), ("2.8.6", 8, 6), ("2.7.12", 7, 12)]
)
def test_version_is_a_minor_and_perhaps_a_patch(text: str, minor: int, patch: int) -> None:
    assert FluxVersion(minor, patch) == FluxVersion.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "2.6",
        "2.10",
        "3.8",
        "v2.8",
        "2.8.",
        "2.8.06",
        "2.8.6.1",
        "2.8-rc.1",
        " 2.8",
        "2.8\n",
        "2.08",
        "2.8.\u0663",
    ],
)
def test_other_versions_are_refused(text: str) -> None:
    with pytest.raises(VersionError, match=r"^must be a Flux version from 2\.7 to 2\.9"):
        FluxVersion.parse(text)


def test_versions_order_by_age_with_a_bare_minor_first() -> None:
    texts = ["2.7", "2.7.5", "2.8", "2.8.0", "2.8.2", "2.8.10", "2.9"]
    assert texts == [str(version) for version in sorted(map(FluxVersion.parse, reversed(texts)))]


def test_since_looks_at_the_minor_only() -> None:
    assert [FluxVersion.parse("2.8.3").since(minor) for minor in MINORS] == [True, True, False]
    assert [FluxVersion.parse("2.9").since(minor) for minor in MINORS] == [True, True, True]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.7", "nohooks"),
        ("2.7.5", "nohooks"),
        ("2.8", "nohooks"),
        ("2.8.0", "combined"),
        ("2.8.5", "combined"),
        ("2.8.6", "nohooks"),
        ("2.8.8", "nohooks"),
        ("2.9", "separate-available"),
        ("2.9.4", "separate-available"),
    ],
)
def test_hooks_reach_post_renderers_by_release(text: str, expected: str) -> None:
    assert expected == hooks(FluxVersion.parse(text))


def test_substitution_is_strict_from_2_9_on() -> None:
    assert [strict_substitution(FluxVersion.parse(text)) for text in ("2.7", "2.8", "2.8.8", "2.9", "2.9.4")] == [
        False,
        False,
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("kind", "version", "expected"),
    [
        ("HelmRelease", "2.7", ("helm.toolkit.fluxcd.io/v2", "helm.toolkit.fluxcd.io/v2beta2")),
        ("HelmRelease", "2.8", ("helm.toolkit.fluxcd.io/v2",)),
        ("ImagePolicy", "2.8.3", ("image.toolkit.fluxcd.io/v1", "image.toolkit.fluxcd.io/v1beta2")),
        ("ImagePolicy", "2.9", ("image.toolkit.fluxcd.io/v1",)),
        ("OCIRepository", "2.7", ("source.toolkit.fluxcd.io/v1", "source.toolkit.fluxcd.io/v1beta2")),
        ("Kustomization", "2.9", ("kustomize.toolkit.fluxcd.io/v1",)),
        ("Deployment", "2.9", ()),
    ],
)
def test_old_apis_are_served_until_their_removal(kind: str, version: str, expected: tuple[str, ...]) -> None:
    assert expected == served_versions(kind, FluxVersion.parse(version))


@given(st.sampled_from(MINORS), st.none() | st.integers(0, 9999))
def test_version_text_survives_the_round_trip(minor: str, patch: int | None) -> None:
    text = minor if patch is None else f"{minor}.{patch}"
    assert text == str(FluxVersion.parse(text))


@given(st.text("0123456789.v-", max_size=8))
def test_a_text_is_either_kept_or_refused(text: str) -> None:
    try:
        version = FluxVersion.parse(text)
    except VersionError:
        return
    assert text == str(version)
    assert version.line in MINORS
