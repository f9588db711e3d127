"""Compare the entity tag of an answer with the tags that a client already has (RFC 9110, section 13.1.2)."""

import re

_TAG = re.compile(r'(?:W/)?("[!#-~]*")')


def is_known(tag: str, if_none_match: str) -> bool:
    """Return True if the header lists the tag, weak or strong, or is `*`."""
    return if_none_match.strip() == "*" or tag.removeprefix("W/") in _TAG.findall(if_none_match)
