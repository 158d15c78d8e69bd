"""The page of the server."""

from __future__ import annotations

from functools import partial

from pellucid.serve.page import Lessons, make_service_page
from pellucid.serve.parts import Parts
from pellucid.serve.responses import Reply
from pellucid.serve.table import Table


def add_page_route(routes: Table, parts: Parts, lessons: Lessons) -> None:
    """Add ``/``, which is made when it is asked for the first time.

    Args:
        routes: the table to add them to.
        parts: of the server.
        lessons: the lessons of a model that runs in the page.
    """
    made: list[bytes] = []
    has_keys = parts.settings.keys is not None

    @routes.get("/", include_in_schema=False)
    async def page() -> Reply:
        """Show the page."""
        if not made:
            make = partial(make_service_page, parts.models, has_keys=has_keys, lessons=lessons)
            made.append(await parts.scheduler.call(make))
        headers = {
            "Cache-Control": "no-store",
            "Content-Security-Policy": "frame-ancestors 'none'",
            "X-Frame-Options": "DENY",
        }
        return Reply(made[0], headers=headers, media_type="text/html; charset=utf-8")
