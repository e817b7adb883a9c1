"""ImageNet's 1,000 classes as everyday things: "tabby", "Persian cat" -> "cat", an animal. A table, nothing else.

Knows nothing of the classifier; numbers are ImageNet-1k class numbers in the usual order.
"""
from __future__ import annotations

from functools import lru_cache

# name: (wider names, class numbers). Classes that stand nowhere here go by their own ImageNet name.
GROUPS: dict[str, tuple[str, str]] = {
    "dog": ("animal pet mammal", "151-268"), "cat": ("animal pet mammal", "281-285"),
    "wolf": ("animal mammal", "269-272"), "wild dog": ("animal mammal", "273-275"), "fox": ("animal mammal", "277-280"),
    "lion": ("animal mammal", "291"), "tiger": ("animal mammal", "292"), "cheetah": ("animal mammal", "293"),
    "leopard": ("animal mammal", "288-289"), "jaguar": ("animal mammal", "290"), "lynx": ("animal mammal", "287"),
    "bear": ("animal mammal", "294-297"), "panda": ("animal mammal", "388"), "red panda": ("animal mammal", "387"),
    "rabbit": ("animal mammal", "330-332"), "hamster": ("animal pet mammal", "333"), "squirrel": ("animal mammal", "335"),
    "guinea pig": ("animal pet mammal", "338"), "horse": ("animal mammal", "339"), "zebra": ("animal mammal", "340"),
    "pig": ("animal mammal", "341-343"), "hippo": ("animal mammal", "344"), "cow": ("animal mammal", "345"),
    "buffalo": ("animal mammal", "346-347"), "sheep": ("animal mammal", "348-349"), "goat": ("animal mammal", "350"),
    "antelope": ("animal mammal", "351-353"), "camel": ("animal mammal", "354"), "llama": ("animal mammal", "355"),
    "weasel": ("animal mammal", "356-359"), "monkey": ("animal mammal ape", "365-384"),
    "elephant": ("animal mammal", "101 385-386"), "kangaroo": ("animal mammal", "104"), "koala": ("animal mammal", "105"),
    "whale": ("animal mammal", "147-148"), "seal": ("animal mammal", "150"),
    "shark": ("animal fish", "2-4"), "ray": ("animal fish", "5-6"), "fish": ("animal", "0-1 389-397"),
    "chicken": ("animal bird", "7-8"), "ostrich": ("animal bird", "9"), "owl": ("animal bird", "24"),
    "eagle": ("animal bird", "21-22"), "parrot": ("animal bird", "87-90"), "duck": ("animal bird", "97-98"),
    "goose": ("animal bird", "99"), "swan": ("animal bird", "100"), "flamingo": ("animal bird", "130"),
    "penguin": ("animal bird", "145"), "peacock": ("animal bird", "84"), "stork": ("animal bird", "127-128"),
    "bird": ("animal", "10-20 23 80-83 85-86 91-96 129 131-144 146"),
    "newt": ("animal amphibian", "25-29"), "frog": ("animal amphibian", "30-32"), "turtle": ("animal reptile", "33-37"),
    "lizard": ("animal reptile", "38-48"), "crocodile": ("animal reptile", "49-50"), "dinosaur": ("animal", "51"),
    "snake": ("animal reptile", "52-68"), "scorpion": ("animal", "71"), "spider": ("animal", "72-77"),
    "crab": ("animal", "118-121 125"), "lobster": ("animal", "122-124"), "snail": ("animal", "113"), "slug": ("animal", "114-115"),
    "jellyfish": ("animal", "107"), "coral": ("animal", "109"), "beetle": ("animal insect", "300-307"),
    "fly": ("animal insect", "308"), "bee": ("animal insect", "309"), "ant": ("animal insect", "310"),
    "grasshopper": ("animal insect", "311-312"), "dragonfly": ("animal insect", "319-320"),
    "butterfly": ("animal insect", "321-326"), "starfish": ("animal", "327"),
    "car": ("vehicle", "436 468 511 609 627 656 661 751 817"), "ambulance": ("vehicle car", "407"),
    "truck": ("vehicle", "555 569 675 717 734 864 867"), "bus": ("vehicle", "654 779 874"),
    "train": ("vehicle", "466 547 565 705 820"), "tram": ("vehicle train", "829"), "bicycle": ("vehicle bike", "444 671"),
    "motorcycle": ("vehicle motorbike bike", "665 670"), "tricycle": ("vehicle", "870"), "tank": ("vehicle", "847"),
    "boat": ("vehicle ship", "472 484 554 576 625 814 871 914 780"), "ship": ("vehicle boat", "403 510 628 724"),
    "submarine": ("vehicle ship", "833"), "airplane": ("vehicle aircraft plane", "404 895"),
    "balloon": ("vehicle aircraft", "405 417"), "tractor": ("vehicle", "595 856 866"), "helmet": ("clothing", "518 560"),
    "rocket": ("vehicle", "657 744 812"), "snow vehicle": ("vehicle", "802-803"), "golf cart": ("vehicle", "575"),
    "camper van": ("vehicle", "757"), "cart": ("vehicle", "428 603 612 690"),
    "tower": ("building", "437 442 540 682 832 900"),
    "church": ("building", "406 497 663"), "castle": ("building", "483"), "palace": ("building", "698"),
    "mosque": ("building", "668"), "dome": ("building", "538"), "bridge": ("building", "821 839 888"),
    "house": ("building", "425 449 500 580 660 853 915"), "greenhouse": ("building", "580"),
    "shop": ("building", "415 454 467 582 788 860 865"), "restaurant": ("building", "762"), "crane": ("machine", "517"),
    "chair": ("furniture", "423 559 765 857"), "sofa": ("furniture couch", "831"), "bench": ("furniture", "703"),
    "table": ("furniture", "532"), "desk": ("furniture", "526"), "bed": ("furniture", "516 520 564"),
    "cupboard": ("furniture", "493 495 553 648 894"), "bookshelf": ("furniture", "453"), "lamp": ("furniture light", "619 846"),
    "computer": ("device", "527 590 620 681"), "screen": ("device", "664 782 851"), "keyboard": ("device", "508 810 878"),
    "mouse": ("device", "673"), "telephone": ("device phone", "487 528 707"), "camera": ("device", "732 759"),
    "printer": ("device", "713 742"), "radio": ("device", "754 848 632"), "clock": ("device watch", "409 530 892 826"),
    "watch": ("clock device", "531"), "remote control": ("device", "761"), "fridge": ("device", "760"),
    "washing machine": ("device", "897"), "stove": ("device", "827"), "toaster": ("device", "859"), "microwave": ("device", "651"),
    "guitar": ("instrument", "402 546"), "piano": ("instrument", "579 881"), "violin": ("instrument", "486 889"),
    "trumpet": ("instrument", "513 566 875"), "drum": ("instrument", "541 822"), "flute": ("instrument", "558 683 699"),
    "bottle": ("container", "440 720 737 898 907"), "glass": ("container", "441 572"), "bowl": ("container", "659 809"),
    "cup": ("container mug", "504 968"), "pot": ("container", "469 505 521 544 738 849 909"), "bucket": ("container", "463"),
    "box": ("container", "478 492 519"), "bag": ("container", "414 636 728 748"), "vase": ("container", "883"),
    "basket": ("container", "588 790"), "plate": ("dish", "923"), "pan": ("dish", "567"),
    "ball": ("toy", "429 430 522 574 722 768 805 852 890"), "teddy bear": ("toy", "850"),
    "shoe": ("clothing", "502 514 630 770 774"), "hat": ("clothing", "439 452 515 808"), "glasses": ("clothing", "836-837"),
    "dress": ("clothing", "399 578 601 655 689"), "shirt": ("clothing", "610 841"), "coat": ("clothing", "501 568 617 869"),
    "tie": ("clothing", "457 906"), "suit": ("clothing", "834"), "sock": ("clothing", "496 806"), "trousers": ("clothing", "608"),
    "swimwear": ("clothing", "445 639-640 842"), "umbrella": ("tool", "879"), "knife": ("tool", "499 623"), "hammer": ("tool", "587"),
    "pen": ("tool", "418 563 749"), "gun": ("weapon", "413 763-764"), "cannon": ("weapon", "471"),
    "coffee": ("drink food", "967"), "wine": ("drink food", "966"), "soup": ("food", "925-926"),
    "bread": ("food", "930-932"), "burger": ("food", "933"), "hot dog": ("food", "934"), "pizza": ("food", "963"),
    "ice cream": ("food dessert", "928-929"), "cake": ("food dessert", "927"), "pasta": ("food", "959"), "burrito": ("food", "965"),
    "apple": ("food fruit", "948"), "strawberry": ("food fruit", "949"), "orange": ("food fruit", "950"),
    "lemon": ("food fruit", "951"), "fig": ("food fruit", "952"), "pineapple": ("food fruit", "953"), "banana": ("food fruit", "954"),
    "pomegranate": ("food fruit", "957"), "fruit": ("food", "955-956"), "cabbage": ("food vegetable", "936"),
    "pepper": ("food vegetable", "945"), "squash": ("food vegetable", "939-942"), "cucumber": ("food vegetable", "943"),
    "vegetable": ("food", "937-938 944 946"), "corn": ("food vegetable plant", "987"),
    "mushroom": ("plant", "947 991-997"), "flower": ("plant", "985-986"), "field of flowers": ("plant flower", "984"),
    "mountain": ("landscape", "970 972 979"), "volcano": ("landscape mountain", "980"), "lake": ("landscape water", "975"),
    "beach": ("landscape sea water", "976-978"), "coral reef": ("landscape sea", "973"), "geyser": ("landscape", "974"),
    "street sign": ("sign", "919"), "traffic light": ("sign", "920"), "fence": ("structure", "489 716 912"), "wall": ("structure", "825"),
    "sports player": ("person", "981"), "bridegroom": ("person", "982"), "diver": ("person", "983"),
    "printed page": ("paper", "549 692 916-918 921-922"),
}
# Shorter everyday words for some ImageNet names.
FINE_NAMES = {
    442: "bell tower", 832: "stupa", 437: "lighthouse", 540: "oil platform", 339: "brown horse", 345: "ox", 468: "taxi",
    814: "speedboat", 101: "elephant with tusks", 948: "green apple", 404: "passenger plane", 895: "warplane", 436: "estate car",
    8: "hen", 7: "cock", 517: "building crane", 134: "crane (the bird)", 638: "swimsuit", 296: "polar bear", 383: "lemur",
    984: "rapeseed", 972: "cliff", 970: "mountain", 967: "espresso", 504: "mug",
}
# The same thing in other words, for questions. Values are names above or wider names.
SAME = {
    "puppy": "dog", "doggy": "dog", "hound": "dog", "kitten": "cat", "kitty": "cat", "feline": "cat", "canine": "dog",
    "automobile": "car", "auto": "car", "taxi": "car", "cab": "car", "van": "car", "lorry": "truck", "coach": "bus",
    "motorbike": "motorcycle", "scooter": "motorcycle", "moped": "motorcycle", "bike": "bicycle", "cycle": "bicycle",
    "plane": "airplane", "aeroplane": "airplane", "jet": "airplane", "aircraft": "airplane", "rail": "train",
    "locomotive": "train", "streetcar": "tram", "sailboat": "boat", "yacht": "boat", "vessel": "ship", "mug": "cup",
    "couch": "sofa", "phone": "telephone", "cellphone": "telephone", "smartphone": "telephone", "mobile": "telephone",
    "laptop": "computer", "notebook": "computer", "pc": "computer", "monitor": "screen", "tv": "screen",
    "television": "screen", "espresso": "coffee", "cappuccino": "coffee", "beverage": "drink", "meal": "food",
    "hamburger": "burger", "cheeseburger": "burger", "pony": "horse", "bull": "cow", "ox": "cow", "cattle": "cow",
    "hen": "chicken", "rooster": "chicken", "bunny": "rabbit", "ape": "monkey", "gorilla": "monkey",
    "chimpanzee": "monkey", "serpent": "snake", "skyscraper": "tower", "shelf": "bookshelf", "spectacles": "glasses",
    "sunglasses": "glasses", "footwear": "shoe", "boot": "shoe", "sneaker": "shoe", "cap": "hat", "blossom": "flower",
    "seaside": "beach", "coast": "beach", "hill": "mountain", "creature": "animal", "transport": "vehicle",
    "truck": "truck", "lighthouse": "tower", "mammals": "mammal",
}
# What no class stands for: the answer must be "can't tell", never "no".
UNSEEN = frozenset(
    "person people man woman men women child children boy girl baby human face crowd tree trees plant sky cloud grass "
    "sun moon water road street hand eye smile shadow light window door floor room".split())
MANY = {"people": "person", "men": "man", "women": "woman", "children": "child", "mice": "mouse", "geese": "goose",
        "wolves": "wolf", "knives": "knife", "buses": "bus", "fish": "fish", "sheep": "sheep", "glasses": "glasses",
        "trousers": "trousers", "gas": "gas", "bus": "bus", "leaves": "leaf"}


@lru_cache(maxsize=1)
def groups_by_class() -> tuple[str, ...]:
    """For each of the 1,000 classes the name of its group, "" where it has none."""
    names = [""] * 1000
    for name, (_, numbers) in GROUPS.items():
        for part in numbers.split():
            first, _, last = part.partition("-")
            for number in range(int(first), int(last or first) + 1):
                names[number] = names[number] or name
    return tuple(names)


def wider_names(name: str) -> tuple[str, ...]:
    """"cat" -> ("animal", "pet", "mammal"); () for a name without a group. Animals outside the groups are the caller's."""
    return tuple(GROUPS[name][0].split()) if name in GROUPS else ()


def singular(noun: str) -> str:
    """"dogs" -> "dog", "people" -> "person"; good enough for looking things up."""
    if noun in MANY:
        return MANY[noun]
    if len(noun) > 4 and noun.endswith("ies"):
        return noun[:-3] + "y"
    if len(noun) > 4 and noun.endswith(("ches", "shes", "sses", "xes")):
        return noun[:-2]
    if len(noun) > 3 and noun.endswith("s") and not noun.endswith(("ss", "us", "is")):
        return noun[:-1]
    return noun


def everyday(noun: str) -> str:
    """The name used in `GROUPS` for what a question calls a thing: "puppies" -> "dog"."""
    one = singular(noun.lower())
    return SAME.get(one, one)


@lru_cache(maxsize=1)
def known_names() -> frozenset[str]:
    """Everything that can be said to be there or not: groups and their wider names."""
    return frozenset(GROUPS) | {wide for wider, _ in GROUPS.values() for wide in wider.split()}
