"""Words in a picture: where text stands (detector) and what it says (recogniser), both PP-OCRv6 small through `rapidocr`.

Knows nothing of reading order, tables or notes: it gives `Word` values in no promised order. Works in steps, so that
its caller can stop between them. Needs no network: both models lie inside the `rapidocr` wheel.
"""
from __future__ import annotations

from collections.abc import Iterator

from .layout import Word

DETECT_SIDE = 960  # longest side of the detector's first look: half a second on 2 cores, 200 MB
CLOSE_SIDE = 1600  # longest side of its second look, in bands, where the first found small print
SMALL_PRINT = 18  # height of a box in the first look, in the detector's pixels
BAND = 520  # height of a band: as many pixels as the first look
BATCH_WIDTH = 3600  # pixels of width read at once, a step of about 0.3 s; the recogniser's output takes 10 kB a pixel
LEAST_SCORE = 0.7


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
            "Rec.rec_batch_num": 64,  # batches are ours
            "Det.limit_type": "max",  # sizes are ours: its own rule would blow a 1000 x 40 strip up to 18400 x 736
            "Det.limit_side_len": 2 * CLOSE_SIDE,
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

        pixels = np.asarray(image)[:, :, ::-1]  # the models were trained on BGR
        boxes: list = []
        for step in self._find(image):
            if isinstance(step, str):
                yield step
            else:
                boxes = step
        # Batches of like width: the recogniser pads a batch to its widest line.
        boxes.sort(key=_width_to_height)
        words: list[Word] = []
        done = 0
        while done < len(boxes):
            yield f"reading words {done} of {len(boxes)}"
            size = 1
            while done + size < len(boxes) and (size + 1) * 48 * _width_to_height(boxes[done + size]) <= BATCH_WIDTH:
                size += 1
            batch = boxes[done:done + size]
            read = self._ocr.recognize_txt([_straighten(pixels, box) for box in batch])
            for box, text, score in zip(batch, read.txts, read.scores):
                text = " ".join(str(text).split())
                if score >= LEAST_SCORE and any(letter.isalnum() for letter in text):
                    (left, top), (right, bottom) = box.min(axis=0), box.max(axis=0)
                    words.append(Word(text, float(left), float(top), float(right), float(bottom), float(score)))
            done += size
        yield tuple(words)

    def _find(self, image) -> Iterator[str | list]:
        """Yields a progress text before each step, and last of all the boxes.

        A box is a float array (4, 2), clockwise from the top left corner, in pixels of `image`.
        """
        import numpy as np

        yield "finding words"
        longest = max(image.size)
        scale = min(DETECT_SIDE / longest, 2.0)  # small pictures are doubled: small print is found then
        first = self._detect(_scaled(image, scale))
        heights = [_sides(box)[1] for box in first]
        closer = min(CLOSE_SIDE / longest, 1.0)
        if first and np.median(heights) < SMALL_PRINT and closer > 1.2 * scale:
            page = _scaled(image, closer)
            overlap = round(3 * SMALL_PRINT * closer / scale)
            found = []
            for top in range(0, page.height, BAND):
                yield "finding small words"
                start, end = max(0, top - overlap), min(page.height, top + BAND + overlap)
                for box in self._detect(page.crop((0, start, page.width, end))):
                    box = box + np.float32([0, start])
                    # Text cut by a band's edge has its middle outside the band, and is whole in the next one.
                    if top <= box[:, 1].mean() < top + BAND:
                        found.append(box)
            first, scale = found, closer
        edge = np.float32([image.width - 1, image.height - 1])
        yield [np.clip(box / np.float32(scale), 0, edge) for box in first]

    def _detect(self, image) -> list:
        """Boxes in pixels of `image`, which is of a size that the detector takes as it is."""
        import numpy as np

        pixels = np.asarray(image)[:, :, ::-1]
        tall, wide = pixels.shape[:2]
        # The detector misses text that touches the border or fills a thin strip: give it a margin in the border's colour.
        margin = max(16, (max(tall, wide) // 4 - min(tall, wide)) // 2)
        border = np.median(np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]]), axis=0)
        padded = np.empty((tall + 2 * margin, wide + 2 * margin, 3), np.uint8)
        padded[:] = border.astype(np.uint8)
        padded[margin:margin + tall, margin:margin + wide] = pixels
        try:
            _, found = self._ocr.detect_and_crop(padded, {})
        except self._nothing_found:
            return []
        return [np.asarray(box, np.float32) - margin for box in found.boxes]


def _scaled(image, scale: float):
    from PIL import Image

    size = (max(1, round(image.width * scale)), max(1, round(image.height * scale)))
    return image.resize(size, Image.Resampling.BILINEAR, reducing_gap=2)


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
