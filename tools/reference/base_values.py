"""Expected values for tests/base and tests/tensor: Python's own UTF-8 decoder, NumPy and PyTorch.

Run `python3 tools/reference/base_values.py` from the top of the tree; it rewrites tests/golden/utf8_replace.txt
and tests/golden/half_rounding.txt. Needs numpy and torch.
"""

import itertools
import random
from pathlib import Path

import numpy as np
import torch

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"

# Bytes on either side of each border of table 3-7 of the Unicode standard.
BORDERS = bytes.fromhex("41 7F 80 8F 90 9F A0 BF C0 C1 C2 DF E0 E1 EC ED EE EF F0 F1 F3 F4 F5 FF")


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def replaced(data):
    return data.decode("utf-8", "replace").encode()


def utf8_replace():
    generator = random.Random(1)
    cases = [bytes(c) for n in (1, 2) for c in itertools.product(BORDERS, repeat=n)]
    cases += [bytes(generator.choices(BORDERS, k=generator.randint(3, 9))) for _ in range(400)]
    four = b"".join(replaced(bytes(c)) for c in itertools.product(BORDERS, repeat=4))
    lines = [f"{fnv1a(four):016x}"] + [f"{case.hex()} {replaced(case).hex()}" for case in cases]
    (GOLDEN / "utf8_replace.txt").write_text("\n".join(lines) + "\n")


def rounding_inputs(high_bits, lows):
    """Floats whose bits are every value of the upper `high_bits` followed by each of `lows`; NaN left out."""
    high = np.arange(1 << high_bits, dtype=np.uint32) << np.uint32(32 - high_bits)
    bits = (high[:, None] | np.array(lows, dtype=np.uint32)[None, :]).ravel()
    return bits[(bits & 0x7FFFFFFF) <= 0x7F800000].view(np.float32)


def half_rounding():
    widened = np.arange(65536, dtype=np.uint16).view(np.float16)
    widened = widened[~np.isnan(widened)].astype(np.float32)
    with np.errstate(over="ignore"):
        half = rounding_inputs(19, [0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF]).astype(np.float16)
    brain = torch.from_numpy(rounding_inputs(16, [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF]).copy()).to(torch.bfloat16)
    rows = {
        "f16_to_f32": widened.astype("<f4").tobytes(),
        "f32_to_f16": half.view(np.uint16).astype("<u2").tobytes(),
        "f32_to_bf16": brain.view(torch.int16).numpy().astype("<i2").tobytes(),
    }
    lines = [f"{name} {len(data)} {fnv1a(data):016x}" for name, data in rows.items()]
    (GOLDEN / "half_rounding.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    utf8_replace()
    half_rounding()
