"""What the refusal of a disk means, in words that say what to do."""

import errno

from persistence.errors import PersistenceError

__all__ = ["failure"]

_WORDS = {
    errno.ENOSPC: "the disk is full: free space and try again; nothing was written",
    errno.EDQUOT: "the quota of this user is used up: free space and try again; nothing was written",
    errno.EFBIG: "the file would be larger than this process or disk allows: raise the limit; nothing was written",
    errno.EACCES: "this user may not use it: correct its owner or rights",
    errno.EPERM: "this user may not use it: correct its owner or rights",
    errno.EROFS: "the disk is mounted read-only: mount it for writing, or choose another directory",
    errno.ENOTDIR: "a part of the path is a file: choose a directory",
    errno.EISDIR: "a directory is in the way: move it away, or choose another directory for the store",
    errno.ELOOP: "a symbolic link is in the way: remove it",
    errno.ENAMETOOLONG: "the path is too long: choose a shorter directory",
    errno.ENOLCK: "its file system cannot lock: keep the store on a local disk",
    errno.EOPNOTSUPP: "its file system cannot lock: keep the store on a local disk",
    errno.ENOSYS: "its file system cannot lock: keep the store on a local disk",
    errno.EMFILE: "this process has too many files open: raise its limit (ulimit -n)",
    errno.ENFILE: "this machine has too many files open: raise its limit",
    errno.ESTALE: "the disk was replaced underneath: mount it again",
    errno.EIO: "the disk failed: look at the system's log, and restore the store from a backup where it is damaged",
}


def failure(path: object, trouble: OSError, kind: type[PersistenceError] = PersistenceError) -> PersistenceError:
    """The error for a disk that refused, in one line."""
    words = _WORDS.get(trouble.errno or 0, "the disk refused: see to it and try again")
    return kind(f"the store at {str(path)!r}: {words} ({trouble.strerror or trouble})")
