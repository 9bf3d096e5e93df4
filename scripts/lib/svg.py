# SPDX-License-Identifier: BSD-3-Clause
"""Small line charts as SVG text: panels side by side, each line labelled at its end."""

import math
from html import escape
from typing import NamedTuple

WIDTH, HEIGHT = 390, 240  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 50, 96, 30, 42  # around what is drawn into
COLUMNS = 2
TITLE = 34
LABEL = 13  # the least distance of two labels
INK, FAINT = "#2a2a2a", "#dddddd"


class Line(NamedTuple):
    name: str
    points: list  # (x, y)
    colour: str
    width: float = 1.6
    dashed: bool = False


class Panel(NamedTuple):
    title: str
    x_title: str
    y_title: str
    lines: list
    x_ticks: list  # (value, text)
    x_log: bool
    y_log: bool
    y_text: object  # value -> text
    end_text: object = "".format  # what stands behind a line's name: value at its end -> text


class Scale:
    """Values to pixels."""

    def __init__(self, low, high, first, last, log):
        self.map = math.log if log else float
        self.low, self.high = self.map(low), self.map(high)
        self.first, self.last = first, last

    def __call__(self, value):
        share = (self.map(value) - self.low) / ((self.high - self.low) or 1)
        return round(self.first + share * (self.last - self.first), 1)


def steps(low, high, log):
    """Round values from low to high, few enough to be read."""
    if log:
        decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        digits = (1,) if len(decades) > 4 else (1, 2, 5)
        return [digit * 10.0 ** power for power in decades for digit in digits
                if low <= digit * 10.0 ** power <= high * 1.0001]
    step = 10.0 ** math.floor(math.log10(high))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1, 2) if high / (step * part) <= 6)
    return [step * count for count in range(math.ceil(low / step), int(high / step) + 1)]


def text(x, y, words, anchor="middle", colour=INK, size=11, more=""):
    return (f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="{colour}" font-size="{size}"{more}>'
            f"{escape(words)}</text>")


def stroke(points, colour, width=1.0, dashed=False):
    path = " ".join(f"{x},{y}" for x, y in points)
    dash = ' stroke-dasharray="5 4"' if dashed else ""
    return (f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}'
            ' stroke-linejoin="round"/>')


def apart(wanted, top, bottom):
    """Heights near those wanted (in falling order of height), none on another."""
    out = []
    for y in wanted:
        out.append(max(y, out[-1] + LABEL if out else top))
    for at in range(len(out) - 1, -1, -1):
        most = out[at + 1] - LABEL if at + 1 < len(out) else bottom
        out[at] = min(out[at], most)
    return out


def frame(panel, x, y, x_at, y_at, y_ticks):
    bottom, right = y + HEIGHT - BOTTOM, x + WIDTH - RIGHT
    yield text(x + LEFT, y + TOP - 14, panel.title, "start", size=13, more=' font-weight="bold"')
    for value in y_ticks:
        yield stroke([(x + LEFT, y_at(value)), (right, y_at(value))], FAINT)
        yield text(x + LEFT - 6, y_at(value) + 4, panel.y_text(value), "end")
    for value, words in panel.x_ticks:
        yield stroke([(x_at(value), bottom), (x_at(value), bottom + 4)], INK)
        yield text(x_at(value), bottom + 16, words)
    yield stroke([(x + LEFT, y + TOP), (x + LEFT, bottom), (right, bottom)], INK)
    yield text((x + LEFT + right) / 2, bottom + 33, panel.x_title)
    yield text(x + 12, (y + TOP + bottom) / 2, panel.y_title,
               more=f' transform="rotate(-90 {x + 12} {(y + TOP + bottom) / 2})"')


def draw(panel, x, y):
    every = [point for line in panel.lines for point in line.points]
    low, high = min(v for _, v in every), max(v for _, v in every)
    low, high = (low / 1.15, high * 1.15) if panel.y_log else (0, high * 1.05)
    ticks = [value for value, _ in panel.x_ticks]
    bottom = y + HEIGHT - BOTTOM
    x_at = Scale(min(ticks), max(ticks), x + LEFT + 10, x + WIDTH - RIGHT - 6, panel.x_log)
    y_at = Scale(low, high, bottom, y + TOP, panel.y_log)
    yield from frame(panel, x, y, x_at, y_at, steps(low, high, panel.y_log))
    for line in reversed(panel.lines):  # the first is on top
        points = [(x_at(a), y_at(b)) for a, b in line.points]
        yield stroke(points, line.colour, line.width, line.dashed)
        if not line.dashed:
            yield from (f'<circle cx="{a}" cy="{b}" r="2.6" fill="{line.colour}"/>'
                        for a, b in points)
    ends = sorted(panel.lines, key=lambda line: y_at(line.points[-1][1]))
    heights = apart([y_at(line.points[-1][1]) + 4 for line in ends], y + TOP, bottom + 4)
    for line, height in zip(ends, heights):
        words = f"{line.name} {panel.end_text(line.points[-1][1])}"
        yield text(x_at(line.points[-1][0]) + 8, height, words, "start", line.colour)


def chart(title, panels):
    """The text of an SVG file."""
    rows = -(-len(panels) // COLUMNS)
    width, height = WIDTH * min(COLUMNS, len(panels)), TITLE + HEIGHT * rows
    body = [text(14, 22, title, "start", size=14)]
    for at, panel in enumerate(panels):
        body += draw(panel, WIDTH * (at % COLUMNS), TITLE + HEIGHT * (at // COLUMNS))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}" font-family="Helvetica, Arial, sans-serif">\n'
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n' + "\n".join(body) +
            "\n</svg>\n")
