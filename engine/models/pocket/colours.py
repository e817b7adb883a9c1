"""Which colours a picture has, named as people name them, and whether it is plain or drawn. numpy and PIL only."""
from __future__ import annotations

from dataclasses import dataclass

# A name may stand several times: people's "green" spans a wide range. Values are sRGB.
NAMED = (
    ("black", (0, 0, 0)), ("black", (28, 28, 28)), ("dark grey", (75, 75, 75)), ("grey", (128, 128, 128)),
    ("light grey", (200, 200, 200)), ("white", (255, 255, 255)), ("white", (240, 240, 240)),
    ("red", (255, 0, 0)), ("red", (215, 35, 35)), ("red", (200, 20, 50)), ("dark red", (130, 10, 20)), ("dark red", (90, 15, 15)),
    ("pink", (255, 150, 180)), ("pink", (255, 190, 205)), ("pink", (255, 90, 150)), ("light red", (255, 110, 105)),
    ("orange", (255, 140, 0)), ("orange", (240, 110, 30)), ("brown", (120, 70, 30)), ("brown", (150, 95, 60)),
    ("dark brown", (65, 40, 25)), ("light brown", (190, 145, 105)), ("beige", (225, 205, 170)), ("beige", (245, 230, 205)),
    ("yellow", (255, 240, 0)), ("yellow", (250, 210, 40)), ("yellow", (255, 245, 120)), ("olive", (128, 128, 20)),
    ("olive", (95, 95, 45)), ("green", (0, 255, 0)), ("green", (0, 150, 0)), ("green", (50, 170, 80)), ("green", (110, 190, 40)),
    ("dark green", (0, 80, 10)), ("dark green", (35, 65, 40)), ("light green", (150, 235, 150)), ("grey green", (120, 145, 120)),
    ("turquoise", (0, 200, 190)), ("turquoise", (0, 128, 128)), ("light blue", (135, 205, 250)), ("light blue", (180, 215, 240)),
    ("light blue", (0, 235, 255)), ("blue", (0, 0, 255)), ("blue", (30, 100, 220)), ("blue", (60, 130, 200)), ("blue", (20, 60, 170)),
    ("dark blue", (0, 0, 110)), ("dark blue", (20, 35, 80)), ("grey blue", (105, 130, 155)), ("purple", (128, 0, 160)),
    ("purple", (150, 60, 210)), ("purple", (90, 30, 110)), ("light purple", (200, 165, 235)), ("magenta", (255, 0, 255)),
)
LEAST_SHARE = 0.06


@dataclass(frozen=True)
class Colours:
    """names: (name, share of the picture 0..1), the largest first. plain: one colour and nothing on it.

    middle: main colour of the middle half, where the thing itself mostly is.
    flat: share of the picture whose pixels equal their neighbours; near 1 for drawings and screens, near 0 for photographs.
    """
    names: tuple[tuple[str, float], ...] = ()
    middle: str = ""
    plain: bool = False
    flat: float = 0.0


def see_colours(image) -> Colours:
    """Name the main colours of an RGB picture."""
    import numpy as np

    width, height = image.size
    step = max(1, max(width, height) // 1000)
    pixels = np.asarray(image)[::step, ::step].astype(np.int16)
    usual = np.median(pixels.reshape(-1, 3), axis=0)
    other = (np.abs(pixels - usual).max(axis=2) > 24).mean()
    small = pixels[:: max(1, pixels.shape[0] // 100), :: max(1, pixels.shape[1] // 100)]
    kinds = name_colours(small)
    tall, wide = kinds.shape
    middle = kinds[tall // 4: tall - tall // 4, wide // 4: wide - wide // 4]
    shares = [(name, share) for name, share in _shares(kinds) if share >= LEAST_SHARE][:4]
    return Colours(tuple(shares), _shares(middle)[0][0], bool(other < 0.0005), _flatness(pixels))


def name_colours(pixels):
    """An array (..., 3) of sRGB 0 to 255 -> an array (...) of indices into `NAMED`, nearest in OKLab."""
    import numpy as np

    lab = _to_lab(np.asarray(pixels, np.float32))
    table = _to_lab(np.array([value for _, value in NAMED], np.float32))
    distance = ((lab[..., None, :] - table) ** 2).sum(axis=-1)
    return distance.argmin(axis=-1)


def name_colour(red: float, green: float, blue: float) -> str:
    """The everyday name of one sRGB colour, each part 0 to 255."""
    return NAMED[int(name_colours([[red, green, blue]])[0])][0]


def _shares(kinds) -> list[tuple[str, float]]:
    import numpy as np

    sums: dict[str, float] = {}
    places, counts = np.unique(kinds, return_counts=True)
    for place, count in zip(places, counts):
        name = NAMED[int(place)][0]
        sums[name] = sums.get(name, 0.0) + float(count) / kinds.size
    return sorted(sums.items(), key=lambda item: -item[1])


def _flatness(pixels) -> float:
    import numpy as np

    if pixels.shape[0] < 3 or pixels.shape[1] < 3:
        return 1.0
    right = np.abs(pixels[:-1, 1:] - pixels[:-1, :-1]).max(axis=2)
    down = np.abs(pixels[1:, :-1] - pixels[:-1, :-1]).max(axis=2)
    return float((np.maximum(right, down) <= 1).mean())


def _to_lab(rgb):
    """sRGB 0..255 -> OKLab (Ottosson 2020). In CIELAB a strong blue lies nearer to purple than to blue."""
    import numpy as np

    scaled = rgb / 255.0
    linear = np.where(scaled <= 0.04045, scaled / 12.92, ((scaled + 0.055) / 1.055) ** 2.4)
    to_lms = np.array([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                       [0.0883024619, 0.2817188376, 0.6299787005]], np.float32)
    to_lab = np.array([[0.2104542553, 0.7936177850, -0.0040720468], [1.9779984951, -2.4285922050, 0.4505937099],
                       [0.0259040371, 0.7827717662, -0.8086757660]], np.float32)
    return np.cbrt(linear @ to_lms.T) @ to_lab.T
