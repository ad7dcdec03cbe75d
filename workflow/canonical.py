"""JSON by which two values are equal."""

import json
from typing import Any, cast

from workflow.errors import InputTranslationError

__all__ = ["canonical_json"]


def canonical_json(payload: Any) -> str:
    """The text by which two answers are equal: keys sorted, order of lists and types of numbers significant.

    Raises `InputTranslationError` for what is no JSON (NaN and infinities, sets, keys that are no text).
    """
    try:
        text = json.dumps(payload, sort_keys=True, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError) as trouble:
        raise InputTranslationError(f"the answer is no JSON ({trouble}): send plain JSON values") from trouble
    if not _has_text_keys(payload):
        raise InputTranslationError("the answer has keys that are no text: send plain JSON values")
    return text


def _has_text_keys(payload: Any) -> bool:
    if isinstance(payload, dict):
        held = cast(dict[Any, Any], payload)
        return all(isinstance(key, str) and _has_text_keys(value) for key, value in held.items())
    if isinstance(payload, list | tuple):
        return all(_has_text_keys(item) for item in cast(list[Any], payload))
    return True
