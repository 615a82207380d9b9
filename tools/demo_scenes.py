"""Six scenes for conversations about images, drawn in flat colours. Every run gives the same images."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import cos, pi, sin

from PIL import Image, ImageDraw

WIDTH, HEIGHT = 320, 240
FINER = 4  # scale at which scenes are drawn before they are reduced
COLOURS = 160  # palette size, for small files

INK, WHITE, GREY, SKIN = "#2b2b33", "#fbfbf6", "#9aa0a8", "#f0c4a0"
RED, YELLOW, GREEN, BLUE, ORANGE = "#d3262f", "#f7d038", "#3f9b4b", "#2a5fc9", "#ea8a2c"
WOOD, DARK_WOOD, LEAF, DARK_LEAF = "#b57a42", "#84552b", "#4fa653", "#2f7a3b"

Point = tuple[float, float]


class Canvas:
    """A canvas that takes coordinates of the finished image."""

    def __init__(self, background: str) -> None:
        self._image = Image.new("RGB", (WIDTH * FINER, HEIGHT * FINER), background)
        self._draw = ImageDraw.Draw(self._image)

    def box(self, left: float, top: float, right: float, bottom: float, fill: str, radius: float = 0) -> None:
        self._draw.rounded_rectangle([FINER * edge for edge in (left, top, right, bottom)], FINER * radius, fill)

    def oval(self, x: float, y: float, across: float, down: float, fill: str) -> None:
        self._draw.ellipse([FINER * edge for edge in (x - across, y - down, x + across, y + down)], fill)

    def sector(self, x: float, y: float, across: float, down: float, start: float, end: float, fill: str) -> None:
        """A slice of an oval, between two angles in degrees, clockwise from three o'clock."""
        box = [FINER * edge for edge in (x - across, y - down, x + across, y + down)]
        self._draw.pieslice(box, start, end, fill)

    def shape(self, points: list[Point], fill: str) -> None:
        self._draw.polygon([(FINER * x, FINER * y) for x, y in points], fill)

    def line(self, points: list[Point], fill: str, width: float) -> None:
        """A line with round ends and corners."""
        for (x, y), (to_x, to_y) in pairwise(points):
            self._draw.line([FINER * x, FINER * y, FINER * to_x, FINER * to_y], fill, round(FINER * width))
        for x, y in points:
            self.oval(x, y, width / 2, width / 2, fill)

    def finished(self) -> Image.Image:
        small = self._image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS)
        return small.quantize(COLOURS, dither=Image.Dither.NONE)


def _curve(x: float, y: float, across: float, down: float, start: float, end: float) -> list[Point]:
    """Points along an oval, between two angles in degrees, clockwise from three o'clock."""
    angles = [pi / 180 * (start + (end - start) * step / 24) for step in range(25)]
    return [(x + across * cos(angle), y + down * sin(angle)) for angle in angles]


def kitchen() -> Image.Image:
    """A table with three red apples and two bananas in a bowl and a blue cup; a flower in the window; three o'clock."""
    canvas = Canvas("#f4e3c1")
    canvas.box(30, 18, 140, 122, DARK_WOOD)  # the window
    canvas.box(36, 24, 134, 116, "#a9dcf5")
    canvas.sector(85, 116, 49, 26, 180, 360, "#8cc878")
    canvas.oval(112, 44, 12, 12, YELLOW)
    canvas.box(82, 24, 87, 116, DARK_WOOD)
    canvas.box(22, 116, 148, 126, DARK_WOOD, 2)
    canvas.line([(58, 96), (58, 68)], DARK_LEAF, 3)  # the flower
    canvas.oval(50, 84, 9, 4, DARK_LEAF)
    canvas.oval(66, 80, 9, 4, DARK_LEAF)
    for x, y in _curve(58, 62, 9, 9, 0, 300)[::4]:
        canvas.oval(x, y, 6, 6, "#e86aa0")
    canvas.oval(58, 62, 5, 5, YELLOW)
    canvas.shape([(44, 94), (72, 94), (67, 116), (49, 116)], "#c8633a")
    canvas.box(42, 91, 74, 98, "#b4532d")
    canvas.oval(232, 62, 36, 36, INK)  # the clock
    canvas.oval(232, 62, 32, 32, WHITE)
    for hour, (x, y) in enumerate(_curve(232, 62, 27, 27, 0, 360)[:-1:2]):
        canvas.oval(x, y, *((2.4, 2.4) if hour % 3 == 0 else (1.2, 1.2)), INK)
    canvas.line([(232, 62), (232, 40)], INK, 2.5)
    canvas.line([(232, 62), (247, 62)], INK, 4)
    canvas.shape([(18, 176), (302, 176), (320, 216), (0, 216)], WOOD)  # the table
    canvas.box(0, 216, 320, 228, DARK_WOOD)
    canvas.box(14, 228, 34, 240, DARK_WOOD)
    canvas.box(286, 228, 306, 240, DARK_WOOD)
    canvas.oval(120, 206, 56, 6, "#9a6636")
    for x, y in ((126, 112), (140, 118)):  # the bananas
        for width, peel in ((15, "#b98a14"), (12, YELLOW)):
            canvas.line(_curve(x, y, 38, 40, 5, 85), peel, width)
        canvas.line([(x + 38, y + 2), (x + 37, y - 7)], DARK_WOOD, 5)
    for x, y in ((76, 150), (106, 141), (94, 159)):  # the apples
        canvas.oval(x, y, 17, 16, "#a51820")
        canvas.oval(x, y, 16, 15, RED)
        canvas.oval(x - 6, y - 6, 4, 3, "#f08a88")
        canvas.line([(x, y - 12), (x + 2, y - 19)], DARK_WOOD, 2.5)
        canvas.oval(x + 7, y - 18, 5, 2.5, LEAF)
    canvas.sector(120, 160, 64, 46, 0, 180, "#6aa7a0")  # the bowl
    canvas.box(52, 157, 188, 164, "#86c2ba", 3)
    canvas.oval(250, 208, 30, 5, "#9a6636")  # the cup
    canvas.oval(275, 184, 15, 14, BLUE)
    canvas.oval(275, 184, 9, 8, WOOD)
    canvas.box(226, 162, 272, 208, BLUE, 8)
    canvas.oval(249, 164, 23, 6, "#5b8be6")
    canvas.oval(249, 165, 19, 4, "#5a3216")
    return canvas.finished()


def street() -> Image.Image:
    """A red bus, number 7, with a driver and two passengers, before houses; the traffic light is green."""
    canvas = Canvas("#bfe4f7")
    canvas.oval(284, 30, 17, 17, YELLOW)
    for x, y in ((120, 26), (138, 20), (156, 27)):
        canvas.oval(x, y, 20, 10, WHITE)
    houses = ((0, 62, 82, "#d9a066"), (62, 36, 138, "#c97b63"), (138, 70, 204, "#e3c27a"), (204, 48, 276, "#a8b4c4"))
    for left, top, right, wall in houses:
        canvas.box(left, top, right, 176, wall)
        canvas.box(left, top, right, top + 5, "#7b4a3a")
        for x in range(left + 10, right - 14, 22):
            for y in range(top + 14, 150, 28):
                canvas.box(x, y, x + 12, y + 16, "#fdf3c4")
                canvas.box(x + 5, y, x + 7, y + 16, "#8a6a4c")
    canvas.box(276, 120, 320, 176, "#9fd08c")
    canvas.box(294, 118, 302, 176, DARK_WOOD)  # a tree
    for x, y, size in ((298, 96, 22), (284, 108, 15), (312, 108, 15)):
        canvas.oval(x, y, size, size, LEAF)
    canvas.box(0, 170, 320, 184, "#c9c9c4")  # pavement and road
    canvas.box(0, 184, 320, 240, "#5b5e66")
    for x in range(-10, 320, 56):
        canvas.box(x, 224, x + 30, 228, WHITE)
    canvas.oval(140, 214, 110, 6, "#484b52")
    canvas.box(34, 92, 246, 206, RED, 10)  # the bus
    canvas.box(34, 158, 246, 166, "#f4e9d8")
    canvas.box(34, 196, 246, 206, "#8f161d", 4)
    for x in (46, 84, 122):
        canvas.box(x, 108, x + 32, 148, "#cfeaf5", 3)
    canvas.box(164, 108, 194, 196, "#7f1218", 2)  # the door
    canvas.box(167, 112, 178, 192, "#cfeaf5", 2)
    canvas.box(180, 112, 191, 192, "#cfeaf5", 2)
    canvas.box(202, 108, 246, 150, "#cfeaf5", 4)
    for x, hair, coat in ((62, "#5a3216", BLUE), (138, INK, GREEN), (226, "#8a6a4c", "#39415a")):
        canvas.sector(x, 150, 13, 16, 180, 360, coat)
        canvas.oval(x, 127, 9, 10, SKIN)
        canvas.sector(x, 125, 10, 10, 180, 360, hair)
    canvas.box(34, 148, 164, 152, RED)
    canvas.box(200, 150, 246, 153, RED)
    canvas.box(206, 94, 240, 107, INK, 2)  # the number, over the windscreen, and on the side
    canvas.line([(219, 97), (227, 97), (222, 104)], YELLOW, 2)
    canvas.box(92, 168, 120, 192, WHITE, 3)
    canvas.line([(100, 173), (112, 173), (104, 187)], INK, 3.5)
    canvas.box(240, 174, 248, 184, YELLOW, 3)
    for x in (80, 210):
        canvas.oval(x, 206, 20, 20, INK)
        canvas.oval(x, 206, 9, 9, GREY)
    canvas.box(270, 130, 276, 216, "#3a3d45")  # the traffic light
    canvas.box(259, 72, 287, 140, INK, 6)
    for y, light in ((84, "#5e2226"), (106, "#5f5220"), (128, "#3ff06a")):
        canvas.oval(273, y, 9, 9, light)
    return canvas.finished()


def room() -> Image.Image:
    """An orange cat on a green sofa under a painting of mountains, a lit lamp, a ball of yarn on the rug."""
    canvas = Canvas("#dfe6ea")
    canvas.box(0, 184, 320, 240, "#c79a6b")
    for y in (198, 216):
        canvas.box(0, y, 320, y + 1, "#b0835a")
    canvas.box(0, 179, 320, 186, WHITE)
    canvas.shape([(262, 48), (298, 48), (320, 150), (320, 184), (240, 184)], "#f3edcf")  # the light of the lamp
    canvas.box(278, 50, 283, 200, INK)
    canvas.oval(280, 202, 20, 5, INK)
    canvas.shape([(264, 18), (297, 18), (310, 58), (251, 58)], "#ffd964")
    canvas.box(88, 14, 172, 72, DARK_WOOD, 2)  # the painting on the wall
    canvas.box(93, 19, 167, 67, "#9fd2ee")
    canvas.shape([(93, 67), (118, 32), (143, 67)], "#6f7f92")
    canvas.shape([(122, 67), (145, 40), (167, 67)], "#56677c")
    canvas.shape([(111, 42), (118, 32), (125, 42)], WHITE)
    canvas.oval(154, 30, 5, 5, YELLOW)
    canvas.oval(160, 219, 120, 17, "#7d4a86")  # the rug
    canvas.oval(160, 219, 108, 13, "#a873b0")
    for x in (40, 212):  # the sofa
        canvas.box(x, 194, x + 10, 210, DARK_WOOD)
    canvas.box(28, 92, 234, 180, "#3d8a57", 16)
    canvas.box(129, 100, 132, 160, "#327449")
    canvas.box(22, 156, 240, 200, "#4aa267", 8)
    canvas.box(12, 124, 44, 200, "#3d8a57", 14)
    canvas.box(218, 124, 250, 200, "#3d8a57", 14)
    canvas.shape([(52, 122), (88, 116), (92, 152), (56, 158)], YELLOW)  # a cushion
    canvas.line([*_curve(186, 146, 22, 14, 60, -80)], ORANGE, 8)  # the cat: tail, body, head
    canvas.oval(156, 142, 42, 20, ORANGE)
    for x in (148, 162, 176):
        canvas.line([*_curve(x, 142, 5, 17, 250, 310)], "#b85f14", 4)
    canvas.box(104, 150, 150, 161, ORANGE, 5)
    canvas.oval(108, 156, 7, 5, WHITE)
    for x in (107, 131):
        canvas.shape([(x - 8, 122), (x + (-4 if x < 119 else 4), 102), (x + 8, 118)], ORANGE)
        canvas.shape([(x - 4, 119), (x + (-2 if x < 119 else 2), 108), (x + 4, 117)], "#f3b4a0")
    canvas.oval(119, 130, 21, 18, ORANGE)
    canvas.oval(119, 138, 10, 7, WHITE)
    for x in (111, 127):
        canvas.oval(x, 127, 4, 4.5, "#bfe36a")
        canvas.oval(x, 127, 1.6, 4, INK)
    canvas.shape([(116, 133), (122, 133), (119, 137)], "#d9566b")
    for y in (134, 139):
        canvas.line([(108, y + 1), (92, y - 2)], INK, 0.8)
        canvas.line([(130, y + 1), (146, y - 2)], INK, 0.8)
    canvas.line([(188, 222), (206, 230), (226, 224), (240, 230)], BLUE, 1.6)  # the yarn
    canvas.oval(176, 215, 14, 14, BLUE)
    for start in (200, 230, 260):
        canvas.line([*_curve(176, 222, 13, (start - 180) / 5, 200, 340)], "#7ea4ee", 1.2)
    return canvas.finished()


def pond() -> Image.Image:
    """Three ducks and water lilies on a pond; on the bank an empty bench before a tree."""
    canvas = Canvas("#c4e8f8")
    for x, y in ((60, 34), (80, 27), (100, 35)):
        canvas.oval(x, y, 20, 10, WHITE)
    canvas.oval(60, 122, 110, 46, "#a5d494")
    canvas.oval(250, 126, 130, 50, "#97ca86")
    canvas.box(0, 112, 320, 240, "#7fbf6a")
    canvas.box(222, 76, 238, 138, DARK_WOOD)  # the tree
    for x, y, size in ((230, 46, 34), (202, 62, 25), (258, 62, 25), (230, 72, 26)):
        canvas.oval(x, y, size, size, DARK_LEAF)
    for x, y, size in ((226, 42, 26), (204, 58, 17), (254, 56, 18)):
        canvas.oval(x, y, size, size, LEAF)
    for x in (188, 262):  # the bench
        canvas.box(x, 104, x + 5, 152, INK)
    for y in (106, 115):
        canvas.box(180, y, 275, y + 6, WOOD, 2)
    canvas.box(176, 129, 279, 136, WOOD, 2)
    canvas.box(176, 135, 279, 138, DARK_WOOD, 1)
    canvas.oval(150, 204, 172, 46, "#5f9f50")
    canvas.oval(150, 206, 166, 43, "#4f9fd0")
    for x, y in ((60, 190), (150, 178), (210, 226), (96, 232), (250, 196)):
        canvas.box(x, y, x + 34, y + 1.6, "#8cc8ea", 0.8)
    for x, y in ((262, 216), (238, 228), (30, 212)):  # the lilies
        canvas.sector(x, y, 17, 7, 20, 330, DARK_LEAF)
        for across in (-5, 0, 5):
            canvas.shape(
                [(x - 4 + across / 2, y - 1), (x + across * 1.6, y - 11), (x + 4 + across / 2, y - 1)], "#f4a9c8"
            )
        canvas.oval(x, y - 3, 2.5, 2, YELLOW)
    for x, y in ((62, 208), (128, 196), (182, 210)):  # the ducks
        canvas.oval(x, y + 10, 27, 4, "#3c86b5")
        canvas.shape([(x - 18, y - 2), (x - 32, y - 12), (x - 10, y - 8)], "#d9aa1e")
        canvas.oval(x, y, 24, 12, YELLOW)
        canvas.oval(x - 4, y, 13, 6, "#d9aa1e")
        canvas.oval(x + 17, y - 18, 10, 10, YELLOW)
        canvas.box(x + 10, y - 16, x + 21, y - 2, YELLOW, 4)
        canvas.shape([(x + 25, y - 21), (x + 37, y - 16), (x + 25, y - 13)], ORANGE)
        canvas.oval(x + 20, y - 21, 1.8, 1.8, INK)
    for x, y in ((12, 176), (20, 170), (296, 178), (304, 170), (310, 180)):  # reeds
        canvas.line([(x, y + 34), (x + 2, y)], DARK_LEAF, 2.5)
        canvas.box(x - 1, y - 10, x + 5, y + 6, DARK_WOOD, 3)
    return canvas.finished()


def beach() -> Image.Image:
    """A sailboat on the sea under a bright sun and two gulls; a red and white umbrella and a castle on the sand."""
    canvas = Canvas("#a6dcf7")
    canvas.oval(54, 42, 24, 24, YELLOW)
    for ray in zip(_curve(54, 42, 30, 30, 0, 360)[::2], _curve(54, 42, 38, 38, 0, 360)[::2], strict=True):
        canvas.line([*ray], YELLOW, 3)
    for x, y in ((128, 36), (168, 56)):  # the gulls
        canvas.line(_curve(x - 10, y + 6, 11, 10, 200, 340), WHITE, 3.5)
        canvas.line(_curve(x + 10, y + 6, 11, 10, 200, 340), WHITE, 3.5)
        canvas.oval(x, y + 4, 4, 3, WHITE)
    canvas.box(0, 102, 320, 240, "#2f86c4")
    for x, y in ((20, 116), (110, 124), (284, 118), (150, 142), (40, 140), (266, 144)):
        canvas.line(_curve(x, y, 10, 3, 180, 360), "#8fc9ea", 1.6)
    canvas.shape([(226, 44), (226, 112), (270, 112)], WHITE)  # the boat
    canvas.shape([(220, 56), (220, 112), (192, 112)], "#e8e6da")
    canvas.line([(223, 38), (223, 118)], DARK_WOOD, 3)
    canvas.shape([(184, 116), (278, 116), (262, 134), (200, 134)], DARK_WOOD)
    canvas.box(182, 115, 280, 119, WOOD, 2)
    canvas.oval(230, 137, 44, 3, "#8fc9ea")
    canvas.oval(150, 240, 270, 80, "#d5ecf3")
    canvas.oval(150, 244, 272, 80, "#f2dca0")
    canvas.oval(110, 226, 62, 8, "#d9bd7c")
    canvas.line([(92, 124), (106, 224)], WOOD, 4)  # the umbrella
    for start, colour in zip(range(172, 352, 36), (RED, WHITE, RED, WHITE, RED), strict=True):
        canvas.sector(93, 168, 66, 56, start, start + 36, colour)
    canvas.oval(92, 113, 3, 3, WOOD)
    canvas.oval(252, 224, 48, 5, "#d9bd7c")  # the castle
    for left, top, right in ((210, 186, 234), (270, 186, 294), (230, 198, 274)):
        canvas.box(left, top, right, 224, "#d8a95a")
        for x in range(left, right - 4, 9):
            canvas.box(x, top - 6, x + 5, top, "#d8a95a")
    canvas.sector(252, 224, 8, 16, 180, 360, "#8f6a30")
    for x in (222, 282):
        canvas.box(x - 3, 196, x + 3, 206, "#8f6a30", 3)
    canvas.line([(222, 182), (222, 164)], INK, 1.5)
    canvas.shape([(222, 163), (236, 168), (222, 173)], BLUE)
    return canvas.finished()


def snowman() -> Image.Image:
    """A snowman with a black hat, a red scarf and a carrot, by night; firs, a house with smoke and a lit window."""
    canvas = Canvas("#24345e")
    canvas.oval(284, 34, 18, 18, "#f6efc6")
    canvas.oval(276, 29, 16, 16, "#24345e")
    for x, y in ((20, 26), (58, 58), (104, 20), (150, 42), (196, 16), (228, 52), (304, 84), (130, 78), (30, 90)):
        canvas.oval(x, y, 1.4, 1.4, WHITE)
    canvas.oval(80, 210, 190, 70, "#cfdcee")
    canvas.oval(250, 226, 200, 70, "#e9f0f8")
    canvas.box(0, 206, 320, 240, "#e9f0f8")
    for x, y, size in ((62, 66, 9), (54, 52, 7), (62, 40, 6), (56, 29, 4.5)):  # smoke
        canvas.oval(x, y, size, size * 0.8, "#9aa6bd")
    canvas.box(56, 74, 70, 108, "#8a4a3a")  # the house
    canvas.box(54, 70, 72, 77, WHITE, 2)
    canvas.box(28, 124, 124, 186, "#9c6238")
    for y in range(134, 186, 10):
        canvas.box(28, y, 124, y + 1, "#7f4d2a")
    canvas.shape([(16, 128), (76, 80), (136, 128)], WHITE)
    canvas.shape([(34, 128), (76, 97), (118, 128)], "#9c6238")
    canvas.box(40, 142, 70, 166, "#ffd964")
    canvas.box(54, 142, 56, 166, DARK_WOOD)
    canvas.box(40, 153, 70, 155, DARK_WOOD)
    canvas.box(88, 146, 110, 186, "#5a3216")
    canvas.oval(106, 167, 1.6, 1.6, YELLOW)
    for x, y in ((152, 176), (290, 196)):  # fir trees
        canvas.box(x - 4, y - 8, x + 4, y + 8, DARK_WOOD)
        for step, across in ((0, 26), (20, 21), (40, 15)):
            bottom, top = y - 6 - step, y - 38 - step
            canvas.shape([(x - across, bottom), (x, top), (x + across, bottom)], "#1f6b46")
            canvas.shape([(x - across / 3, top + 11), (x, top), (x + across / 3, top + 11)], WHITE)
    canvas.oval(224, 226, 48, 8, "#c3d1e4")  # the snowman
    canvas.line([(196, 160), (168, 138), (160, 138)], DARK_WOOD, 3)
    canvas.line([(168, 138), (166, 129)], DARK_WOOD, 3)
    canvas.line([(252, 160), (274, 140), (280, 130)], DARK_WOOD, 3)
    canvas.line([(274, 140), (284, 142)], DARK_WOOD, 3)
    for y, size in ((196, 36), (152, 27), (112, 21)):
        canvas.oval(224, y, size + 1, size * 0.94 + 1, "#b5c6de")
        canvas.oval(222, y - 1, size - 1, size * 0.94 - 1, WHITE)
    for y in (150, 162, 184, 198):
        canvas.oval(222, y, 3, 3, INK)
    canvas.box(204, 126, 244, 136, RED, 5)
    canvas.shape([(232, 132), (244, 132), (248, 164), (237, 165)], RED)
    for x in (214, 231):
        canvas.oval(x, 107, 2.6, 2.8, INK)
    canvas.shape([(221, 110), (223, 117), (248, 117)], ORANGE)
    canvas.line(_curve(222, 116, 10, 7, 130, 70), INK, 1.6)
    canvas.box(198, 92, 248, 98, "#101014", 3)
    canvas.box(207, 62, 239, 95, "#101014", 3)
    canvas.box(207, 84, 239, 90, "#b8232b")
    return canvas.finished()


SCENES: dict[str, Callable[[], Image.Image]] = {
    scene.__name__: scene for scene in (kitchen, street, room, pond, beach, snowman)
}
