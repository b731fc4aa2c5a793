"""What every planner of a part of a service is given."""

from __future__ import annotations

from render.catalog import Definition
from render.plan.context import Context, Header, Report
from render.plan.images import Images


class Part:
    """Plans one part of a service, after its images."""

    def __init__(
        self, context: Context, definition: Definition, header: Header, images: Images, report: Report
    ) -> None:
        self.context = context
        self.definition = definition
        self.header = header
        self.images = images
        self.report = report
