"""Records that only the holder of a key can read or make: another codec's bytes, sealed with AES-GCM (extra ``sealed``).

A sealed record is ``sealed:1:<key id>:``, a random nonce of 96 bits, and what the inner codec wrote, encrypted and
authenticated together with that beginning and with the record's place (partition and key). It cannot be read, changed, cut
short, or moved to another place without being refused.
"""

import hmac
import os
import re
from collections.abc import Callable, Mapping
from typing import Any

from persistence import PersistenceError
from workflow.serializer import Serializer

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
except ImportError as missing:
    needs = "SealedSerializer needs the package 'cryptography': pip install 'jarvis-mesh[sealed]'"
    raise ImportError(needs, name=missing.name) from missing

__all__ = ["SealedSerializer"]

KEY_BYTES = 32
NONCE_BYTES = 12
"""The nonce of AES-GCM. Random ones are safe for 2**32 records a key (NIST SP 800-38D, 8.3)."""

_KEY_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_SEALED = re.compile(rb"sealed:1:([A-Za-z0-9._-]{1,64}):")


class SealedSerializer:
    """Seals what ``inner`` writes. ``keys`` are 32 bytes by key id: the first seals, all of them open.

    Raises ValueError for keys that are none. ``random_bytes`` gives so many random bytes.
    """

    def __init__(
        self, inner: Serializer, keys: Mapping[str, bytes], *, random_bytes: Callable[[int], bytes] = os.urandom
    ) -> None:
        _check_keys(keys)
        self._inner = inner
        self._ciphers = {key_id: AESGCM(key) for key_id, key in keys.items()}
        self._key_id, key = next(iter(keys.items()))
        self._comparing_key = hmac.digest(key, b"nonces of values to be compared", "sha256")
        self._random_bytes = random_bytes

    def __getattr__(self, name: str) -> Any:
        """What the inner codec can do beyond the protocol, such as ``admit``."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def dumps(self, value: object, *, context: bytes = b"") -> bytes:
        """See `Serializer.dumps`. Without a context equal values give equal bytes, for whoever compares them."""
        data = self._inner.dumps(value, context=context)
        # The engine finds out what changed by comparing bytes that it never stores, and gives these no context.
        nonce = self._random_bytes(NONCE_BYTES) if context else hmac.digest(self._comparing_key, data, "sha256")[:NONCE_BYTES]
        begin = b"sealed:1:%b:" % self._key_id.encode()
        return begin + nonce + self._ciphers[self._key_id].encrypt(nonce, data, begin + context)

    def loads(self, data: bytes, *, context: bytes = b"") -> object:
        """See `Serializer.loads`. Raises `PersistenceError` for a record that was not sealed here, by one of these keys."""
        match = _SEALED.match(data)
        if match is None:
            raise PersistenceError("a record is not sealed: it was written without keys, or it is forged; nothing was read")
        key_id, begin = match[1].decode(), match[0]
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise PersistenceError(f"a record is sealed with key {key_id!r}, which is not among the keys: add it")
        nonce, sealed = data[len(begin) : len(begin) + NONCE_BYTES], data[len(begin) + NONCE_BYTES :]
        return self._inner.loads(self._opened(cipher, key_id, nonce, sealed, begin + context), context=context)

    def _opened(self, cipher: AESGCM, key_id: str, nonce: bytes, sealed: bytes, place: bytes) -> bytes:
        try:
            return cipher.decrypt(nonce, sealed, place)
        except (InvalidTag, ValueError) as trouble:
            raise PersistenceError(
                f"a record does not open with key {key_id!r}: it is corrupt, forged, or was written to another place, "
                "or another key has this id; nothing was read"
            ) from trouble


def _check_keys(keys: Mapping[str, bytes]) -> None:
    """Raise ValueError for what cannot seal. No key is shown."""
    if not keys:
        raise ValueError("there is no key to seal with: give at least one, {'2026-12': secrets.token_bytes(32)}")
    for key_id, key in keys.items():
        if not _KEY_ID.fullmatch(key_id):
            raise ValueError(f"{key_id!r} is not a key id: use 1 to 64 of the characters A-Z a-z 0-9 . _ -")
        if len(key) != KEY_BYTES:
            raise ValueError(
                f"key {key_id!r} has {len(key)} bytes, not {KEY_BYTES}: make one with secrets.token_bytes({KEY_BYTES})"
            )
