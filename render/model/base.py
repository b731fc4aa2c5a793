"""The common ground of the models: camelCase in YAML, snake_case in Python, unknown fields refused.

The models declare what people may write. They are the source of the published JSON Schemas, which `render.model.read`
enforces on the source nodes; so what an editor accepts is what the compiler accepts, and `build` starts without
importing pydantic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

if TYPE_CHECKING:
    from render.yaml.nodes import Mapping

    # What the reader makes of it.
    Free: TypeAlias = Mapping
else:
    Free = dict[str, Any]
    """A mapping that is carried as written."""

Duration = Annotated[str, Field(pattern=r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$")]
"""A Flux duration: Go's units up to hours, no sign, no days."""

Label = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length=1, max_length=63)]
"""A DNS-1123 label."""

LABEL_OR_VARIABLE = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?|.*[$][{].*)$"
"""A DNS-1123 label, or a text that holds a variable of Flux's postBuild."""

ObjectName = Annotated[
    str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", max_length=253)
]
"""A DNS-1123 subdomain."""


_PREFIX = r"([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
QualifiedName = Annotated[str, Field(pattern=rf"^{_PREFIX}{_NAME}$", max_length=317)]
"""The key of a label or an annotation: a name, optionally after a DNS prefix and `/`."""

LabelValue = Annotated[str, Field(pattern=rf"^({_NAME}|.*[$][{{].*)?$", max_length=63)]
"""The value of a label; one that holds a variable of Flux's postBuild can be judged only in the cluster."""

Labels = dict[QualifiedName, LabelValue]
Annotations = dict[QualifiedName, str]


class Model(BaseModel):
    """A mapping of known fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel, populate_by_name=True)


class NameRef(Model):
    """The name of a Secret in the same namespace."""

    name: ObjectName = Field(description="Name of the Secret.")
