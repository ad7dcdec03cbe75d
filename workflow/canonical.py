"""JSON by which two values are equal, and by which an answer travels."""

import json
import math
from typing import Any, cast

from workflow.errors import InputTranslationError
from workflow.text import is_unicode

__all__ = ["answer_json", "canonical_json"]

_PLAIN = (str, int, float, bool, type(None))


def answer_json(payload: Any) -> str:
    """The text as which an answer travels. Raises `InputTranslationError` for what would not come back as itself.

    Python's JSON silently makes lists of tuples, text and numbers of enums, and one character of two halves that meet.
    """
    try:
        _check_plain(payload, "the answer")
    except RecursionError as trouble:
        raise InputTranslationError("the answer is too deep, or contains itself: send plain JSON values") from trouble
    return canonical_json(payload)


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


def _check_plain(value: Any, path: str) -> None:
    if type(value) is dict:
        for key, item in cast(dict[Any, Any], value).items():
            if type(key) is not str:
                raise InputTranslationError(f"{path} has the key {key!r}, which is no text: send plain JSON values")
            _check_plain(key, f"{path} key")
            _check_plain(item, f"{path}[{key!r}]")
    elif type(value) is list:
        for index, item in enumerate(cast(list[Any], value)):
            _check_plain(item, f"{path}[{index}]")
    elif type(value) not in _PLAIN:
        raise InputTranslationError(f"{path} is of type {type(value).__qualname__}, which is no JSON: send plain JSON values")
    elif type(value) is float and not math.isfinite(value):
        raise InputTranslationError(f"{path} is {value}, which is no JSON: send None or a text")
    elif type(value) is str and not is_unicode(value) and json.loads(json.dumps(value)) != value:
        raise InputTranslationError(f"{path} holds the halves of a surrogate pair, which would be joined: repair the text")
