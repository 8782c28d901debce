"""Arranges the nodes of a graph in layers from left to right and routes the edges between them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

type Edge = tuple[str, str]
"""An edge, as the names of its source and its target."""
type Point = tuple[float, float]

BETWEEN_LAYERS = 46.0
BETWEEN_NODES = 16.0
SWEEPS = 6
"""How many times neighbors are moved closer to each other."""


@dataclass(frozen=True)
class Layout:
    """The positions of nodes and the routes of edges."""

    places: Mapping[str, Point]
    """The upper left corner of each node."""
    routes: Mapping[Edge, Sequence[Point]]
    """The points of each edge, from the right side of its source to the left side of its target.

    A route leads around the nodes in between. Edges that lead back to an earlier node have no route.
    """
    width: float
    height: float


def layered(sizes: Mapping[str, Point], edges: Iterable[Edge]) -> Layout:
    """Returns the layout of a graph. `sizes` has the width and height of each node."""
    forward = _without_circles(list(sizes), edges)
    layer_of = _layers(list(sizes), forward)
    boxes = dict(sizes)
    chains: dict[Edge, list[str]] = {}
    for source, target in forward:
        between = [f"{source}\n{target}\n{number}" for number in range(layer_of[source] + 1, layer_of[target])]
        for number, bend in enumerate(between, start=layer_of[source] + 1):
            layer_of[bend] = number
            boxes[bend] = (0.0, 0.0)
        chains[source, target] = [source, *between, target]
    neighbours: dict[str, list[str]] = {name: [] for name in boxes}
    for chain in chains.values():
        for before, after in pairwise(chain):
            neighbours[before].append(after)
            neighbours[after].append(before)
    count = max(layer_of.values(), default=-1) + 1
    layers = [[name for name in boxes if layer_of[name] == number] for number in range(count)]
    _order(layers, layer_of, neighbours)
    middles = _middles(layers, boxes, neighbours)
    top = min((middles[name] - boxes[name][1] / 2 for name in boxes), default=0.0)
    lefts = []
    left = 0.0
    for layer in layers:
        lefts.append(left)
        left += max(boxes[name][0] for name in layer) + BETWEEN_LAYERS
    places = {name: (lefts[layer_of[name]], middles[name] - boxes[name][1] / 2 - top) for name in boxes}
    height = max((places[name][1] + boxes[name][1] for name in boxes), default=0.0)
    routes = {edge: _route(chain, places, boxes, layers, layer_of) for edge, chain in chains.items()}
    kept = {name: places[name] for name in sizes}
    return Layout(kept, routes, max(left - BETWEEN_LAYERS, 0.0), height)


def _without_circles(names: Sequence[str], edges: Iterable[Edge]) -> list[Edge]:
    """Returns each edge between these nodes once, without the edges that close a cycle."""
    following: dict[str, list[str]] = {name: [] for name in names}
    for source, target in dict.fromkeys(edges):
        if source in following and target in following:
            following[source].append(target)
    kept: list[Edge] = []
    done: set[str] = set()
    for name in names:
        if name in done:
            continue
        way = [(name, iter(following[name]))]
        on_the_way = {name}
        while way:
            here, rest = way[-1]
            target = next(rest, "")
            if not target:
                done.add(here)
                on_the_way.discard(here)
                way.pop()
            elif target not in on_the_way:
                kept.append((here, target))
                if target not in done:
                    on_the_way.add(target)
                    way.append((target, iter(following[target])))
    return kept


def _layers(names: Sequence[str], forward: Iterable[Edge]) -> dict[str, int]:
    """Returns the layer of each node: the number of edges on the longest path to it."""
    before: dict[str, list[str]] = {name: [] for name in names}
    after: dict[str, list[str]] = {name: [] for name in names}
    for source, target in forward:
        before[target].append(source)
        after[source].append(target)
    layer_of = dict.fromkeys(names, 0)
    missing = {name: len(sources) for name, sources in before.items()}
    ready = [name for name in names if not missing[name]]
    while ready:
        name = ready.pop()
        for target in after[name]:
            layer_of[target] = max(layer_of[target], layer_of[name] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    return layer_of


def _order(layers: Sequence[list[str]], layer_of: Mapping[str, int], neighbours: Mapping[str, Sequence[str]]) -> None:
    """Sorts the nodes of each layer by the positions of their neighbors, alternately those before and those after."""
    for step in (-1, 1) * (SWEEPS // 2):
        for number in range(len(layers))[::-step]:
            beside = number + step
            if not 0 <= beside < len(layers):
                continue
            place = {name: at for at, name in enumerate(layers[beside])}
            own = {name: at for at, name in enumerate(layers[number])}
            wanted = {
                name: fmean([place[each] for each in neighbours[name] if layer_of[each] == beside] or [own[name]])
                for name in layers[number]
            }
            layers[number].sort(key=wanted.__getitem__)


def _middles(
    layers: Sequence[Sequence[str]], boxes: Mapping[str, Point], neighbours: Mapping[str, Sequence[str]]
) -> dict[str, float]:
    """Returns the vertical position of each node's center, as close to its neighbors as the space allows."""
    middles: dict[str, float] = {}
    for layer in layers:
        _stack(layer, dict.fromkeys(layer, 0.0), boxes, middles)
    for step in (1, -1) * (SWEEPS // 2):
        for layer in layers[::step]:
            wanted = {name: fmean([middles[each] for each in neighbours[name]] or [middles[name]]) for name in layer}
            _stack(layer, wanted, boxes, middles)
    return middles


def _stack(
    layer: Sequence[str], wanted: Mapping[str, float], boxes: Mapping[str, Point], middles: dict[str, float]
) -> None:
    """Stacks the nodes of a layer without overlap and shifts the stack as close as possible to the wanted positions."""
    bottom = float("-inf")
    for name in layer:
        half = boxes[name][1] / 2
        middles[name] = max(wanted[name], bottom + BETWEEN_NODES + half)
        bottom = middles[name] + half
    shift = fmean(wanted[name] - middles[name] for name in layer)
    for name in layer:
        middles[name] += shift


def _route(
    chain: Sequence[str],
    places: Mapping[str, Point],
    boxes: Mapping[str, Point],
    layers: Sequence[Sequence[str]],
    layer_of: Mapping[str, int],
) -> list[Point]:
    """Returns the points of an edge, which crosses each layer in between horizontally and so touches no node."""
    first, *bends, last = chain
    points = [(places[first][0] + boxes[first][0], places[first][1] + boxes[first][1] / 2)]
    for bend in bends:
        left, height = places[bend]
        widest = max(boxes[name][0] for name in layers[layer_of[bend]])
        points += [(left, height), (left + widest, height)]
    return [*points, (places[last][0], places[last][1] + boxes[last][1] / 2)]
