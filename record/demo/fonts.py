"""Web fonts drawn by a pen: letter skeletons (`glyphs.toml`) stroked at a weight, packed as WOFF2.

A glyph's contours overlap and all run clockwise, so the non-zero winding rule joins them.
"""

import io
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib.tables._g_l_y_f import Glyph

EM = 1000
UNIT = 100
ASCENT, DESCENT = 930, 270
SKELETONS = Path(__file__).with_name("glyphs.toml")

# The heights at which letters end. Skeletons are drawn between the lines; a pen of any weight must
# stay between them too, so they move inwards by half the pen's width.
LINES = {"tall": (-2.0, 0.0, 7.0), "small": (-2.0, 0.0, 5.0, 7.3)}

# Seconds since 1904 (the epoch of OpenType): 1 January 2019.
MADE = 3_629_145_600

# Smooth enough for headlines: outline pieces per curve of the skeleton.
PIECES = 3

STEPS = frozenset("-/>hv")

Point = complex
Curve = tuple[Point, Point, Point, Point]


@dataclass(frozen=True)
class Face:
    """One font: its family name, weight class (CSS), pen width and letter width."""

    family: str
    weight: int
    pen: float
    width: float = 1.0
    roundness: float = 0.5523
    """How far the control points of a quarter ellipse lie out: 0.5523 is round, more is squarer."""


def truetype(face: Face) -> bytes:
    """The font as a TrueType file."""
    return _pack(face, flavor=None)


def woff2(face: Face) -> bytes:
    """The font as a WOFF2 file."""
    return _pack(face, flavor="woff2")


def _pack(face: Face, flavor: str | None) -> bytes:
    names, characters, glyphs, metrics = [".notdef"], {}, {".notdef": Glyph()}, {".notdef": (500, 0)}
    for zone, skeletons in _skeletons().items():
        for character, skeleton in skeletons.items():
            name = f"u{ord(character):04X}"
            names.append(name)
            characters[ord(character)] = name
            glyphs[name], metrics[name] = _draw(skeleton, face, LINES[zone])
    builder = FontBuilder(EM, isTTF=True)
    builder.font.recalcTimestamp = False
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap(characters)
    builder.setupGlyf(glyphs)
    builder.setupHorizontalMetrics(metrics)
    builder.setupHorizontalHeader(ascent=ASCENT, descent=-DESCENT)
    builder.setupHead(unitsPerEm=EM, created=MADE, modified=MADE)
    style = "Bold" if face.weight >= 600 else "Regular"
    builder.setupNameTable({"familyName": face.family, "styleName": style})
    builder.setupOS2(
        usWeightClass=face.weight,
        sTypoAscender=ASCENT,
        sTypoDescender=-DESCENT,
        usWinAscent=ASCENT,
        usWinDescent=DESCENT,
        sxHeight=500,
        sCapHeight=700,
    )
    builder.setupPost()
    builder.font.flavor = flavor
    file = io.BytesIO()
    builder.save(file)
    return file.getvalue()


@cache
def _skeletons() -> dict[str, dict[str, str]]:
    return tomllib.loads(SKELETONS.read_text(encoding="utf-8"))


def _draw(skeleton: str, face: Face, lines: tuple[float, ...]) -> tuple[Glyph, tuple[int, int]]:
    """One glyph and its (advance width, left side bearing)."""
    strokes = [_parse(stroke, face, lines) for stroke in skeleton.split(";") if "," in stroke]
    contours = [contour for stroke in strokes for contour in stroke.outline(face.pen)]
    if not contours:
        return Glyph(), (round(float(skeleton) * UNIT * face.width), 0)
    left, right = _bearings(contours)
    shift = left - min(point.real for contour in contours for point in contour)
    pen = TTGlyphPen(None)
    for contour in contours:
        _trace(pen, [point + shift for point in contour])
    advance = shift + max(point.real for contour in contours for point in contour) + right
    return pen.glyph(), (round(advance), round(left))


def _trace(pen: TTGlyphPen, contour: list[Point]) -> None:
    """Draw a contour of quadratic curves: on-curve and control points in turn."""
    points = [(round(point.real), round(point.imag)) for point in contour]
    pen.moveTo(points[0])
    for control, end in zip(points[1::2], [*points[2::2], points[0]], strict=True):
        pen.qCurveTo(control, end)
    pen.closePath()


def _bearings(contours: list[list[Point]]) -> tuple[float, float]:
    """Space left and right of a glyph: full beside a stem, less where its shape leaves white itself."""
    points = [point for contour in contours for point in contour[::2]]
    bands: dict[int, list[float]] = {}
    for a, b in ((a, b) for contour in contours for a, b in pairwise([*contour[::2], contour[0]])):
        for band in range(round(min(a.imag, b.imag) / 50), round(max(a.imag, b.imag) / 50) + 1):
            along = (band * 50 - a.imag) / (b.imag - a.imag) if a.imag != b.imag else 0.0
            x = a.real + (b.real - a.real) * min(max(along, 0.0), 1.0)
            bands.setdefault(band, []).append(x)
    left_edge, right_edge = min(p.real for p in points), max(p.real for p in points)
    white_left = [min(min(xs) - left_edge, 160.0) for xs in bands.values()]
    white_right = [min(right_edge - max(xs), 160.0) for xs in bands.values()]
    left, right = (max(12.0, 74 - 0.85 * sum(white) / len(white)) for white in (white_left, white_right))
    return left, right


@dataclass(frozen=True)
class _Stroke:
    """One movement of the pen: cubic curves, and which of its ends it overshoots by half its width."""

    curves: tuple[Curve, ...]
    overshoots_start: bool = True
    overshoots_end: bool = True
    is_dot: bool = False

    def outline(self, pen: float) -> list[list[Point]]:
        """Closed contours, each on-curve points and control points in turn."""
        half = pen / 2
        if self.is_dot:
            centre, side = self.curves[0][0], half * 1.12
            corners = [centre + side * d for d in (-1 - 1j, -1 + 1j, 1 + 1j, 1 - 1j)]
            return [_polygon(corners)]
        contours = []
        for run in _smooth_runs(self.curves):
            if len(run) > 1 and abs(run[0][0] - run[-1][3]) < 1:
                outer, inner = (_clockwise(_offset(run, side)[:-1]) for side in (half, -half))
                if _area(outer) > _area(inner):  # clockwise areas are negative
                    outer, inner = inner, outer
                contours += [outer, [inner[0], *reversed(inner[1:])]]
            else:
                contours.append(_clockwise(self._ribbon(run, half)))
        return contours

    def _ribbon(self, run: list[Curve], half: float) -> list[Point]:
        """Along one side of the curves, across the end, back along the other side, across the start."""
        there, back = _offset(run, half), _offset(run, -half)
        end, start = _direction(run[-1], 1.0), _direction(run[0], 0.0)
        for side in (there, back):
            side[-1] = _cut(side[-1], end, run[-1][3], half if self.overshoots_end else 0.0)
            side[0] = _cut(side[0], -start, run[0][0], half if self.overshoots_start else 0.0)
        across_end, across_start = (there[-1] + back[-1]) / 2, (there[0] + back[0]) / 2
        return [*there, across_end, *reversed(back), across_start]


def _cut(corner: Point, direction: Point, tip: Point, reach: float) -> Point:
    """Slide `corner` along `direction` to where the stroke ends: on a level line, or an upright one.

    Feet and tops of letters are cut level whatever the slant of the stroke.
    """
    if abs(direction.imag) >= 0.55 * abs(direction.real):
        goal = tip.imag + (reach if direction.imag > 0 else -reach)
        return corner + direction * ((goal - corner.imag) / direction.imag)
    goal = tip.real + (reach if direction.real > 0 else -reach)
    return corner + direction * ((goal - corner.real) / direction.real)


def _parse(stroke: str, face: Face, lines: tuple[float, ...]) -> _Stroke:
    """A stroke of a skeleton in font units, its lines moved inwards for the pen."""
    here: Point | None = None
    step, control = "", 0j
    curves: list[Curve] = []
    for token in stroke.split():
        if token in STEPS:
            step = token
        elif token == ".":
            assert here is not None
            return _Stroke(((here, here, here, here),), is_dot=True)
        else:
            point = _place(token, face, lines)
            if token.startswith("("):
                step, control = "q", point
                continue
            if here is not None:
                curves.append(_curve(step, here, control, point, face.roundness))
            here = point
    return _Stroke(tuple(curves), "/" not in stroke, "/" not in stroke and ">" not in stroke)


def _place(token: str, face: Face, lines: tuple[float, ...]) -> Point:
    x, y = (float(number) for number in re.findall(r"-?[\d.]+", token))
    inset = 0.0 if token.endswith("!") else face.pen / 2
    levels = [line * UNIT + (inset if line <= 0 else -inset) for line in lines]
    position = min(max(sum(line < y for line in lines), 1), len(lines) - 1)
    low, high = lines[position - 1], lines[position]
    share = (y - low) / (high - low)
    height = levels[position - 1] + share * (levels[position] - levels[position - 1])
    return complex(x * UNIT * face.width, height)


def _curve(step: str, start: Point, control: Point, end: Point, roundness: float) -> Curve:
    match step:
        case "h":
            control = complex(end.real, start.imag)
        case "v":
            control = complex(start.real, end.imag)
        case "q":
            roundness = 2 / 3
        case _:
            return start, start + (end - start) / 3, start + (end - start) * 2 / 3, end
    return start, start + (control - start) * roundness, end + (control - end) * roundness, end


def _smooth_runs(curves: tuple[Curve, ...]) -> Iterator[list[Curve]]:
    """Split at corners."""
    run = [curves[0]]
    for before, after in pairwise(curves):
        turn = _direction(before, 1.0) * _direction(after, 0.0).conjugate()
        if turn.real < 0.94:
            yield run
            run = []
        run.append(after)
    yield run


def _direction(curve: Curve, t: float) -> Point:
    """Unit tangent of a cubic at `t`."""
    a, b, c, d = curve
    tangent = (b - a) * (1 - t) ** 2 + (c - b) * 2 * t * (1 - t) + (d - c) * t**2
    return tangent / abs(tangent)


def _at(curve: Curve, t: float) -> Point:
    a, b, c, d = curve
    return a * (1 - t) ** 3 + b * 3 * t * (1 - t) ** 2 + c * 3 * t**2 * (1 - t) + d * t**3


def _offset(run: list[Curve], distance: float) -> list[Point]:
    """The parallel of the curves at `distance` to the left, as on-curve and control points in turn."""
    outline: list[Point] = []
    for curve in run:
        a, b, c, d = curve
        straight = abs(((b - a) * (d - a).conjugate()).imag) + abs(((c - a) * (d - a).conjugate()).imag) < 1
        pieces = 1 if straight else PIECES
        samples = [
            _at(curve, i / (2 * pieces)) + 1j * distance * _direction(curve, i / (2 * pieces))
            for i in range(2 * pieces + 1)
        ]
        if not outline:
            outline.append(samples[0])
        for i in range(0, 2 * pieces, 2):
            start, middle, end = samples[i : i + 3]
            outline += [2 * middle - (start + end) / 2, end]
    return outline


def _polygon(corners: list[Point]) -> list[Point]:
    sides = pairwise([*corners, corners[0]])
    return [point for a, b in sides for point in (a, (a + b) / 2)]


def _area(contour: list[Point]) -> float:
    """Signed, twice over; negative when clockwise."""
    return sum((a.conjugate() * b).imag for a, b in pairwise([*contour, contour[0]]))


def _clockwise(contour: list[Point]) -> list[Point]:
    """The contour in TrueType's direction; it keeps beginning with an on-curve point."""
    return contour if _area(contour) < 0 else [contour[0], *reversed(contour[1:])]
