"""Classes that are their fields in, with constructor, comparison and text out: dataclasses at a tenth of their price.

Some fifty such classes stand in the path of every build, and `dataclasses` takes half a millisecond to make each of
them, which was a fifth of a short run. Here only the constructor is compiled; the other methods are shared. mypy
treats the two alike, and is what keeps the fields of frozen ones from being set.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

__all__ = ("cast", "field", "final", "replace", "struct")

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar, cast, dataclass_transform, final

    Made = TypeVar("Made")
else:
    # These say something to mypy alone, and importing `typing` takes a tenth of a short run.
    def cast(_kind, value):
        """Return a value, which mypy takes for one of another type."""
        return value

    def final(cls):
        """Return a class, of which mypy allows no others to be derived."""
        return cls

    def dataclass_transform(**_given):
        """Return what marks a decorator that makes dataclasses."""
        return final


class _Factory:
    """A default that is made anew for each object."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], Made]) -> Made:
    """Return the default of a field whose value is made anew for each object."""
    return _Factory(default_factory)  # type: ignore[return-value]


@dataclass_transform(field_specifiers=(field,), eq_default=True)
def struct(*, frozen: bool = False, order: bool = False) -> Callable[[type[Made]], type[Made]]:
    """Return the decorator of a class whose annotated names are its slots; `frozen` ones can be hashed."""

    def decorate(cls: type[Made]) -> type[Made]:
        body = dict(vars(cls))
        names = tuple(body.get("__annotations__", ()))
        for name in ("__dict__", "__weakref__"):
            body.pop(name, None)
        known: dict[str, Any] = {}
        parameters, lines = ["self"], []
        for name in names:
            value = name
            if name in body:
                default = known[f"_{name}"] = body.pop(name)
                if type(default) is _Factory:
                    known[f"_{name}"] = default.make
                    value = f"_{name}() if {name} is _absent else {name}"
                    parameters.append(f"{name}=_absent")
                else:
                    parameters.append(f"{name}=_{name}")
            else:
                parameters.append(name)
            lines.append(f"    self.{name} = {value}\n")
        if "__post_init__" in body:
            lines.append("    self.__post_init__()\n")
        known["_absent"] = _ABSENT
        exec(f"def __init__({', '.join(parameters)}):\n{''.join(lines)}", known)  # noqa: S102 - names of our own fields
        made = {**_SHARED, "__init__": known["__init__"], "_values": _values_of(names)}
        if frozen:
            made["__hash__"] = _hash
        if order:
            made |= _ORDER
        # A method that the class has itself stays.
        body = {**made, **body, "__slots__": names, "__match_args__": names}
        return cast("type[Made]", type(cls.__name__, cls.__bases__, body))

    return decorate


def replace(made: Made, **changes: Any) -> Made:
    """Return a copy with other values in some of its fields."""
    kept = {name: getattr(made, name) for name in made.__match_args__}  # type: ignore[attr-defined]
    return type(made)(**{**kept, **changes})


_ABSENT = object()


# What is compared: a getter of the fields. A class may have its own, as `_values`.
def _values_of(names: tuple[str, ...]) -> Callable[[Any], Any]:
    return attrgetter(*names)


def _eq(self: Any, other: Any) -> Any:
    return self._values(self) == self._values(other) if type(other) is type(self) else NotImplemented


def _lt(self: Any, other: Any) -> Any:
    return self._values(self) < self._values(other) if type(other) is type(self) else NotImplemented


def _le(self: Any, other: Any) -> Any:
    return self._values(self) <= self._values(other) if type(other) is type(self) else NotImplemented


def _gt(self: Any, other: Any) -> Any:
    return self._values(self) > self._values(other) if type(other) is type(self) else NotImplemented


def _ge(self: Any, other: Any) -> Any:
    return self._values(self) >= self._values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(self._values(self))


def _repr(self: Any) -> str:
    told = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({told})"


_SHARED: dict[str, Any] = {"__eq__": _eq, "__repr__": _repr}
_ORDER: dict[str, Any] = {"__lt__": _lt, "__le__": _le, "__gt__": _gt, "__ge__": _ge}
