"""Answers of the HTTP functions: JSON, or a problem (RFC 9457) that says what is wrong and with what."""

import json
from typing import Any

import azure.functions as func


def answer(body: Any, status: int = 200, **headers: str) -> func.HttpResponse:
    """A JSON answer, never cached."""
    return func.HttpResponse(
        json.dumps(body),
        status_code=status,
        mimetype="application/json",
        headers={"Cache-Control": "no-store", **headers},
    )


def problem(status: int, title: str, detail: str) -> func.HttpResponse:
    """What went wrong, in one line."""
    body = {"title": title, "status": status, "detail": detail}
    return func.HttpResponse(json.dumps(body), status_code=status, mimetype="application/problem+json")
