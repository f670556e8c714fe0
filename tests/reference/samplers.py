"""The samplers of docs/spec.md section 4: which candidates each subnet of the stream has."""

from philox import FAIR, SAMPLER, Stream


def draw_uniform(counts, seed, purpose, index):
    stream = Stream(seed, purpose, 0, 0, index)
    return [stream.below(n) for n in counts]


def fair_block(seed, block, candidates, distance, subnets):
    """The candidate of every subnet in one block."""
    order = list(range(candidates))
    drawn, r = [], 0
    while len(drawn) < subnets:
        stream = Stream(seed, FAIR, 0, block, r)
        for q in range(candidates):
            left = candidates - q
            w = left if r == 0 else min(left, candidates - distance + 1)
            j = q + stream.below(w)
            order[q], order[j] = order[j], order[q]
        drawn += order
        r += 1
    return drawn[:subnets]


def draw_fair(counts, seed, distance, subnets):
    columns = [fair_block(seed, block, n, n // 2 if distance is None else distance, subnets)
               for block, n in enumerate(counts)]
    return [list(choices) for choices in zip(*columns)]


def reorder(draws, versioned, window, neighbours):
    """`versioned`[block][candidate] tells which layers count."""
    blocks = range(len(versioned))

    def score(choices, stream):
        total = 0
        for k in range(1, min(neighbours, len(stream)) + 1):
            total += sum((neighbours + 1 - k) * (len(versioned) - b) for b in blocks
                         if choices[b] == stream[-k][b] and versioned[b][choices[b]])
        return total

    left, stream = list(range(len(draws))), []
    while left:
        pending = left[:window]
        chosen = min(pending, key=lambda draw: (score(draws[draw], stream), draw))
        if pending[0] == len(stream) - 4 * window:
            chosen = pending[0]
        left.remove(chosen)
        stream.append(draws[chosen])
    return stream


def stream(sampler, seed, versioned, subnets, listed):
    """The choices of all subnets. `listed` are the entries of a `list` sampler's file."""
    counts = [len(block) for block in versioned]
    if sampler["kind"] == "uniform":
        return [draw_uniform(counts, seed, SAMPLER, seq) for seq in range(subnets)]
    if sampler["kind"] == "fair":
        return draw_fair(counts, seed, sampler["reuse_distance"], subnets)
    if sampler["kind"] == "reorder":
        inner = stream(sampler["of"], seed, versioned, subnets, listed)
        return reorder(inner, versioned, sampler["window"], sampler["neighbours"])
    return listed[:subnets]
