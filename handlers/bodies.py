"""The bodies of requests, read whole or refused with the field that is wrong."""

from typing import Literal

import msgspec

MOST_BODY = 4_096  # bytes


class AggregationRequest(msgspec.Struct, forbid_unknown_fields=True):
    """Which job to take a step further."""

    job: Literal["home_activity"] = "home_activity"


def read_aggregation_request(body: bytes) -> AggregationRequest:
    """ValueError says what is wrong. No body asks for the only job there is."""
    if len(body) > MOST_BODY:
        raise ValueError(f"the body has {len(body)} bytes, more than {MOST_BODY}")
    try:
        return msgspec.json.decode(body or b"{}", type=AggregationRequest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"the body is refused: {error}") from error
