"""Pictures that tests draw for themselves; Pillow brings the font."""

from __future__ import annotations

from PIL import Image, ImageDraw, ImageFont


def font(size):
    return ImageFont.load_default(size=size)


def receipt():
    picture = Image.new("RGB", (520, 700), "white")
    draw = ImageDraw.Draw(picture)
    draw.text((150, 30), "GREEN MARKET", fill="black", font=font(30))
    draw.text((180, 80), "12.03.2026 14:05", fill="black", font=font(22))
    rows = [("Apples", "3.20"), ("Bread", "2.75"), ("Coffee", "6.90"), ("Tax", "1.02"), ("TOTAL", "13.87")]
    for place, (label, amount) in enumerate(rows):
        draw.text((50, 160 + 70 * place), label, fill="black", font=font(28))
        draw.text((400, 160 + 70 * place), amount, fill="black", font=font(28))
    return picture


def sign():
    picture = Image.new("RGB", (700, 300), (0, 70, 160))
    draw = ImageDraw.Draw(picture)
    draw.rectangle((10, 10, 690, 290), outline="white", width=6)
    draw.text((80, 100), "Hamburg   42 km", fill="white", font=font(64))
    return picture


def plain(colour):
    return Image.new("RGB", (400, 300), colour)
