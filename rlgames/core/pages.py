"""What the system does with the memory of tensors."""

from __future__ import annotations

import ctypes
import mmap
import sys

from torch import Tensor

_MADV_DONTNEED, _MADV_COLLAPSE = 4, 25  # Linux's; Python lacks the second
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def discard_pages(tensor: Tensor) -> None:
    """Give back the memory of a tensor that is never read again: its content is lost.

    Does nothing where the system cannot do that, and for a tensor with gaps.
    """
    _advise(tensor, _MADV_DONTNEED)


def collapse_pages(tensor: Tensor) -> None:
    """Move the memory of a tensor, and what shares it, into huge pages, where the system can."""
    _advise(tensor.new_empty(0).set_(tensor.untyped_storage()), _MADV_COLLAPSE)


def _advise(tensor: Tensor, advice: int) -> None:
    """Tell the system about the whole pages of a tensor."""
    start = -(-tensor.data_ptr() // mmap.PAGESIZE) * mmap.PAGESIZE
    size = (tensor.data_ptr() + tensor.nbytes - start) // mmap.PAGESIZE * mmap.PAGESIZE
    if _LIBC is not None and tensor.device.type == "cpu" and tensor.is_contiguous() and size > 0:
        _LIBC.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), advice)
