"""Places the nodes of a graph in layers from left to right, and leads its edges between them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

type Edge = tuple[str, str]
"""The nodes that it leads from and to."""
type Point = tuple[float, float]

BETWEEN_LAYERS = 46.0
BETWEEN_NODES = 16.0
SWEEPS = 6
"""So many times, neighbours are brought closer to each other."""


@dataclass(frozen=True)
class Layout:
    places: Mapping[str, Point]
    """The upper left corner of each node."""
    routes: Mapping[Edge, Sequence[Point]]
    """From the right side of a node to the left side of another, around the nodes in between.

    Without the edges that lead back.
    """
    width: float
    height: float


def layered(sizes: Mapping[str, Point], edges: Iterable[Edge]) -> Layout:
    """`sizes`: width and height of each node."""
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
    """The edges between these nodes, each once, without those that lead back to where a way came from."""
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
    """The number of edges on the longest way to each node."""
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
    """Sorts each layer by the places of its neighbours, alternately in the layer before and in the one behind."""
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
    """The height at which the middle of each node lies: that of its neighbours, as far as there is room."""
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
    """Puts the nodes of a layer below each other, and all together as near as they can be to where they should be."""
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
    """Each layer that lies in between is crossed on a level line, so that no node there is touched."""
    first, *bends, last = chain
    points = [(places[first][0] + boxes[first][0], places[first][1] + boxes[first][1] / 2)]
    for bend in bends:
        left, height = places[bend]
        widest = max(boxes[name][0] for name in layers[layer_of[bend]])
        points += [(left, height), (left + widest, height)]
    return [*points, (places[last][0], places[last][1] + boxes[last][1] / 2)]
