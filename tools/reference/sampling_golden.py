#!/usr/bin/env python3
"""Expected candidate sets and probabilities of the sampling steps, from Hugging Face transformers.

Writes tests/golden/sampling.json. Needs torch and transformers (5.24 was used):

    python tools/reference/sampling_golden.py

Each case is a row of logits, the tokens so far, the options, and what Hugging Face's logits processors leave:
ids in ascending order and their probabilities (softmax in double precision of the processed float32 scores).
Presence and frequency penalties, which transformers does not have, follow the formula of OpenAI's API
reference. Where equal logits straddle top-p's border, torch.sort leaves open which of them stay; the file then
holds the lowest ids, as many as Hugging Face keeps.
"""

import json
import pathlib

import torch
from transformers.generation.logits_process import (
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "sampling.json"
DEFAULT_ORDER = ["penalties", "temperature", "top_k", "top_p", "min_p"]


def penalties(scores, prompt, reply, o):
    if o.get("repetition_penalty", 1.0) != 1.0:
        ids = torch.tensor([prompt + reply], dtype=torch.long)
        scores = RepetitionPenaltyLogitsProcessor(float(o["repetition_penalty"]))(ids, scores)
    counts = torch.zeros_like(scores)
    for i in reply:
        if i < scores.shape[1]:
            counts[0, i] += 1
    subtract = counts * o.get("frequency_penalty", 0.0) + (counts > 0) * o.get("presence_penalty", 0.0)
    return scores - subtract


def top_p(scores, p):
    """TopPLogitsWarper, with ties at the border made definite and its set checked in double precision."""
    kept = torch.isfinite(TopPLogitsWarper(p)(None, scores))[0]
    border = scores[0][kept].min()
    ties = (scores[0] == border).nonzero().flatten()
    tied_kept = int(kept[ties].sum())
    kept[ties] = False
    kept[ties[:tied_kept]] = True

    exact = torch.softmax(scores.double(), -1)[0]
    mass, least = float(exact[kept].sum()), float(exact[border == scores[0]][0])
    if p > 0:
        margin = 1e-7 if scores.shape[1] < 1000 else 0.0
        assert mass >= p - margin and mass - least < p + margin, (mass, least, p)
    return scores.masked_fill(~kept, -float("inf"))


def run(logits, prompt=(), reply=(), order=None, **o):
    scores = torch.tensor([logits], dtype=torch.float32)
    for step in order or DEFAULT_ORDER:
        if step == "penalties":
            scores = penalties(scores, list(prompt), list(reply), o)
        elif step == "temperature" and o.get("temperature", 1.0) != 1.0:
            scores = TemperatureLogitsWarper(float(o["temperature"]))(None, scores)
        elif step == "top_k" and o.get("top_k", 0) > 0:
            scores = TopKLogitsWarper(o["top_k"])(None, scores)
        elif step == "top_p" and o.get("top_p", 1.0) < 1.0:
            scores = top_p(scores, o["top_p"])
        elif step == "min_p" and o.get("min_p", 0.0) > 0:
            scores = MinPLogitsWarper(o["min_p"])(None, scores)
    ids = torch.isfinite(scores[0]).nonzero().flatten().tolist()
    return ids, torch.softmax(scores[0].double(), -1)


def case(name, logits, prompt=(), reply=(), order=(), **o):
    logits = torch.tensor(logits, dtype=torch.float32).tolist()
    ids, probabilities = run(logits, prompt, reply, order, **o)
    return {
        "name": name,
        "logits": logits,
        "prompt": list(prompt),
        "reply": list(reply),
        "order": list(order),
        "options": o,
        "ids": ids,
        "probabilities": [float(f"{probabilities[i]:.9e}") for i in ids],
    }


def small_cases():
    g = torch.Generator().manual_seed(3)
    logits = (torch.randn(24, generator=g) * 3).tolist()
    peaked = [12.0] + logits[1:]
    halves = [float(x) for x in torch.log(torch.tensor([0.5, 0.25, 0.125, 0.0625, 0.0625]))]
    text = {"prompt": [1, 2, 3, 3, 3, 23, 40], "reply": [5, 1, 5, 5, 23]}
    cases = [case(f"temperature {t}", logits, temperature=t) for t in (0.1, 0.8, 1.0, 1.5, 100.0)]
    cases += [case(f"top_k {k}", logits, top_k=k) for k in (1, 2, 7, 23, 24, 1000)]
    cases += [case(f"top_k {k} of ties", [1, 3, 2, 3, 2, 2, 0], top_k=k) for k in (1, 2, 3, 6)]
    cases += [case(f"top_p {p}", logits, top_p=p) for p in (0.0, 0.01, 0.3, 0.5, 0.8, 0.95, 0.999, 0.9999999)]
    cases += [case(f"top_p {p} of a peak", peaked, top_p=p) for p in (0.5, 0.9999)]
    cases += [case(f"top_p {p} of ten equal", [2.0] * 10, top_p=p) for p in (0.05, 0.7, 0.9, 0.91)]
    cases += [case(f"top_p {p} of halves", halves, top_p=p) for p in (0.5, 0.51, 0.75, 0.875, 0.9375)]
    cases += [case("top_p of ties", [0, 2, 1, 1, 1, 1, 3], top_p=0.8)]
    cases += [case(f"min_p {p}", logits, min_p=p) for p in (1e-6, 0.01, 0.05, 0.3, 1.0)]
    cases += [case(f"min_p {p} of halves", halves, min_p=p) for p in (0.125, 0.25, 0.5)]
    cases += [case(f"repetition {r}", logits, **text, repetition_penalty=r) for r in (0.5, 1.1, 1.5, 50.0)]
    cases += [
        case("presence", logits, **text, presence_penalty=1.5),
        case("presence below 0", logits, **text, presence_penalty=-2.0),
        case("frequency", logits, **text, frequency_penalty=0.7),
        case("all penalties", logits, **text, repetition_penalty=1.3, presence_penalty=0.5, frequency_penalty=-0.25),
        case("Qwen3, thinking", logits, temperature=0.6, top_k=20, top_p=0.95),
        case("Qwen3, not thinking", logits, temperature=0.7, top_k=20, top_p=0.8),
        case(
            "everything", logits, **text, repetition_penalty=1.2, presence_penalty=0.3, frequency_penalty=0.2,
            temperature=1.4, top_k=15, top_p=0.9, min_p=0.02,
        ),
        case("temperature before top_p", [3.0, 2.0, 1.0], temperature=0.5, top_p=0.8),
        case("temperature after top_p", [3.0, 2.0, 1.0], order=["top_p", "temperature"], temperature=0.5, top_p=0.8),
        case(
            "backwards", logits, **text, order=DEFAULT_ORDER[::-1], repetition_penalty=1.2, temperature=0.7, top_k=9,
            top_p=0.9, min_p=0.01,
        ),
        case("steps left out", logits, order=["top_k"], top_k=5),
    ]
    return cases


def large_logits(n=151936):
    """Whole multiples of 2^-14, about normal with many ties; the test computes the same ones."""
    ids = torch.arange(n, dtype=torch.int64)
    total = torch.zeros(n, dtype=torch.int64)
    for factor in (2654435761, 2246822519, 3266489917, 668265263):
        total += ((ids * factor + 12345) % 2**32) >> 16
    return ((total - 2**17).float() / 2**13).tolist()


def large_case(logits, **o):
    ids, probabilities = run(logits, **o)
    some = ids[:: max(1, len(ids) // 8)]
    return {
        "options": o,
        "count": len(ids),
        "sum_of_ids": sum(ids),
        "some_ids": some,
        "some_probabilities": [float(f"{probabilities[i]:.9e}") for i in some],
    }


def main():
    logits = large_logits()
    large = [
        large_case(logits, temperature=0.8, top_p=0.95),
        large_case(logits, temperature=0.6, top_k=20, top_p=0.95),
        large_case(logits, top_k=100000),
        large_case(logits, temperature=2.0, top_p=0.5),
        large_case(logits, temperature=0.5, min_p=0.01),
        large_case(logits, temperature=1.3, top_k=5000, top_p=0.7, min_p=0.001),
    ]
    with OUT.open("w") as f:
        f.write('{"small": [\n' + ",\n".join(json.dumps(c) for c in small_cases()))
        f.write('\n], "large": [\n' + ",\n".join(json.dumps(c) for c in large) + "\n]}\n")


if __name__ == "__main__":
    main()
