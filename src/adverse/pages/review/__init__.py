"""The review of a campaign's failures: people say of each whether it is a true one."""

from adverse.pages.review.app import routes_of

__all__ = ["routes_of"]
