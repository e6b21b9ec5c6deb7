"""The cache of shapes of a worker process, limited in number and bytes."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from odradek_tables.decoder.shape import WORD, Shape

MAX_SHAPES = 4096
MAX_BYTES = 256 << 20
MAX_PER_LENGTH = 16
"""Limit of layouts that are tried per length: a client with random layouts slows down only itself."""


class ShapeCache:
    """Shapes by the length of their payloads; the least recently used ones are evicted."""

    def __init__(self, max_shapes: int = MAX_SHAPES, max_bytes: int = MAX_BYTES) -> None:
        self.max_shapes = max_shapes
        self.max_bytes = max_bytes
        self.by_length: OrderedDict[int, list[Shape]] = OrderedDict()
        """For each length, the most recently used shape first."""
        self.shapes = 0
        self.held_bytes = 0

    def find(self, payload: bytes) -> Shape | None:
        candidates = self.by_length.get(len(payload))
        if not candidates:
            return None
        words = np.frombuffer(payload, "<i8", count=len(payload) // WORD)
        for index, shape in enumerate(candidates):
            if shape.fits(payload, words):
                if index:
                    candidates.insert(0, candidates.pop(index))
                self.by_length.move_to_end(shape.length)
                return shape
        return None

    def add(self, shape: Shape) -> None:
        """Add a shape, unless it alone exceeds the limit; evict the least recently used lengths."""
        if shape.held_bytes > self.max_bytes:
            return
        candidates = self.by_length.setdefault(shape.length, [])
        candidates.insert(0, shape)
        self.count(shape, 1)
        self.by_length.move_to_end(shape.length)
        if len(candidates) > MAX_PER_LENGTH:
            self.count(candidates.pop(), -1)
        while self.shapes > self.max_shapes or self.held_bytes > self.max_bytes:
            length, oldest = next(iter(self.by_length.items()))
            self.count(oldest.pop(), -1)
            if not oldest:
                del self.by_length[length]

    def count(self, shape: Shape, times: int) -> None:
        self.shapes += times
        self.held_bytes += times * shape.held_bytes

    def clear(self) -> None:
        self.by_length.clear()
        self.shapes = self.held_bytes = 0
