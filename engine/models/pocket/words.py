"""Words in a picture: where text stands (detector) and what it says (recogniser), both PP-OCRv6 small through `rapidocr`.

Knows nothing of reading order, tables or notes: it gives `Word` values in no promised order. Works in steps, so that
its caller can stop between them. Needs no network: both models lie inside the `rapidocr` wheel.
"""
from __future__ import annotations

from collections.abc import Iterator

from .layout import Word

DETECT_SIDE = 1280  # longest side the detector sees: an A4 page stays readable, and a step under 0.6 s and 250 MB
RECOGNISE_BATCH = 6
LEAST_SCORE = 0.7
MOST_BOXES = 400  # about five dense pages; more boxes than this is texture, not text


class WordReader:
    """Finds and reads words. One reader serves one thread at a time.

    threads: CPU threads for onnxruntime; None leaves the choice to it.
    """

    def __init__(self, threads: int | None = None):
        import rapidocr
        from rapidocr.main import RapidOCRError
        from pathlib import Path

        models = Path(rapidocr.__file__).parent / "models"
        self._nothing_found = RapidOCRError
        self._ocr = rapidocr.RapidOCR(params={
            "Global.log_level": "critical",  # its logger writes to the console at every load
            # Paths are given, because without them a missing file would be fetched from the network.
            "Det.model_path": str(models / "PP-OCRv6_det_small.onnx"),
            "Rec.model_path": str(models / "PP-OCRv6_rec_small.onnx"),
            "Rec.rec_batch_num": RECOGNISE_BATCH,
            "Det.limit_type": "max",  # sizes are ours: its own rule would blow a 1000 x 40 strip up to 18400 x 736
            "Det.limit_side_len": 2 * DETECT_SIDE,
            "Global.use_vertical_padding": False,
            "EngineConfig.onnxruntime.intra_op_num_threads": threads or -1,
        })

    def warm_up(self) -> None:
        """Load both models now (they are loaded at first use otherwise)."""
        import numpy as np

        blank = np.full((64, 320, 3), 255, np.uint8)
        try:
            self._ocr.detect_and_crop(blank, {})
        except self._nothing_found:
            pass
        self._ocr.recognize_txt([blank[:48]])

    def read(self, image) -> Iterator[str | tuple[Word, ...]]:
        """Read the words of an upright RGB picture.

        Yields a progress text before each step, and last of all a tuple of `Word` in pixels of `image`.
        """
        import numpy as np

        yield "finding words"
        boxes = self._detect(image)
        words: list[Word] = []
        pixels = np.asarray(image)[:, :, ::-1]  # the models were trained on BGR
        # Batches of like width: the recogniser pads a batch to its widest line.
        boxes.sort(key=_width_to_height)
        for start in range(0, len(boxes), RECOGNISE_BATCH):
            yield f"reading words {start} of {len(boxes)}"
            batch = boxes[start:start + RECOGNISE_BATCH]
            read = self._ocr.recognize_txt([_straighten(pixels, box) for box in batch])
            for box, text, score in zip(batch, read.txts, read.scores):
                text = " ".join(str(text).split())
                if text and score >= LEAST_SCORE:
                    (left, top), (right, bottom) = box.min(axis=0), box.max(axis=0)
                    words.append(Word(text, float(left), float(top), float(right), float(bottom), float(score)))
        yield tuple(words)

    def _detect(self, image) -> list:
        """Boxes as float arrays of shape (4, 2), clockwise from the top left corner, in pixels of `image`."""
        import numpy as np

        width, height = image.size
        scale = min(DETECT_SIDE / max(width, height), 2.0)  # small pictures are doubled: small print is found then
        if scale >= 1:
            scale = max(1.0, min(scale, 1000 / max(width, height)))
        small = np.asarray(image.resize((max(1, round(width * scale)), max(1, round(height * scale)))))[:, :, ::-1]
        # The detector misses text that touches the border or fills a thin strip: give it a margin in the border's colour.
        margin = max(16, (max(small.shape[:2]) // 4 - min(small.shape[:2])) // 2)
        border = np.median(np.concatenate([small[0], small[-1], small[:, 0], small[:, -1]]), axis=0)
        padded = np.empty((small.shape[0] + 2 * margin, small.shape[1] + 2 * margin, 3), np.uint8)
        padded[:] = border.astype(np.uint8)
        padded[margin:margin + small.shape[0], margin:margin + small.shape[1]] = small
        try:
            _, found = self._ocr.detect_and_crop(padded, {})
        except self._nothing_found:
            return []
        boxes = [(np.asarray(box, np.float32) - margin) / scale for box in found.boxes[:MOST_BOXES]]
        return [np.clip(box, 0, [width - 1, height - 1]).astype(np.float32) for box in boxes]


def _sides(box) -> tuple[float, float]:
    import numpy as np

    width = max(np.linalg.norm(box[0] - box[1]), np.linalg.norm(box[2] - box[3]))
    height = max(np.linalg.norm(box[0] - box[3]), np.linalg.norm(box[1] - box[2]))
    return float(max(width, 1.0)), float(max(height, 1.0))


def _width_to_height(box) -> float:
    width, height = _sides(box)
    return width / height


def _straighten(pixels, box):
    """Cut one box out of the full-size picture, turned level, 48 pixels high as the recogniser wants it."""
    import cv2
    import numpy as np

    width, height = _sides(box)
    upright = height < 2 * width  # single letters are tall; only clearly tall boxes are text on its side
    tall = 48 if upright else max(8, round(48 * height / width))
    wide = max(8, round(48 * width / height)) if upright else 48
    # A wide shrink skips pixels, so shrink the piece in steps first.
    left, top = np.floor(box.min(axis=0)).astype(int)
    right, bottom = np.ceil(box.max(axis=0)).astype(int) + 1
    piece = np.ascontiguousarray(pixels[top:bottom, left:right])
    corners = (box - [left, top]).astype(np.float32)
    shrink = min(1.0, 2 * 48 / min(width, height))
    if shrink < 1:
        piece = cv2.resize(piece, None, fx=shrink, fy=shrink, interpolation=cv2.INTER_AREA)
        corners = corners * np.float32(shrink)
    target = np.float32([[0, 0], [wide, 0], [wide, tall], [0, tall]])
    straight = cv2.warpPerspective(piece, cv2.getPerspectiveTransform(corners, target), (wide, tall),
                                   flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE)
    return straight if upright else np.ascontiguousarray(np.rot90(straight))
