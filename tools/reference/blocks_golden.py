#!/usr/bin/env python3
"""Writes small random models whose matrices have GGUF's block formats, tests/golden/gguf/qwen3_blocks_*.gguf, and what Hugging
Face transformers computes from the same weights, dequantised by the gguf package: tests/golden/models/*/expected.json.

    pip install gguf torch transformers tokenizers safetensors
    tools/reference/blocks_golden.py

expected.json is that of model_golden.py; its noise is that of the arithmetic which such weights allow:

    f32               inputs of products rounded to 15 bits in groups of 32, and the weights of formats that are not held without
                      loss rounded to 8 bits in groups of 32
    rounded_inputs    inputs of 4-bit weights rounded to 8 bits in groups of 32, other inputs and weights to bfloat16, and the same
                      weights to 8 bits
"""

import json

import gguf
import numpy as np
import torch
from transformers import AutoModelForCausalLM, Qwen3Config

import block_formats
import gguf_models
import model_golden
from model_golden import EAGER, OUT, TEXT

Type = gguf.GGMLQuantizationType
SETTINGS = dict(hidden_size=256, intermediate_size=64, num_attention_heads=2, num_key_value_heads=1, head_dim=32, num_hidden_layers=1)
# Formats by matrix; those of 256 elements want rows of 256, which o_proj and down_proj do not have.
MODELS = {
    "qwen3_blocks_exact": {  # held without loss
        "q_proj": Type.Q4_K, "k_proj": Type.Q3_K, "v_proj": Type.Q6_K, "o_proj": Type.Q4_0, "gate_proj": Type.Q8_0,
        "up_proj": Type.IQ4_NL, "down_proj": Type.Q5_0, "embed_tokens": Type.Q4_1, "lm_head": Type.Q3_K,
    },
    "qwen3_blocks_rounded": {
        "q_proj": Type.Q2_K, "k_proj": Type.IQ4_XS, "v_proj": Type.Q5_K, "o_proj": Type.Q5_1, "gate_proj": Type.IQ4_XS,
        "up_proj": Type.Q2_K, "down_proj": Type.Q4_1, "embed_tokens": Type.Q5_K, "lm_head": Type.Q4_K,
    },
}
# Where a second scale is subtracted: its size that centres the values of random bits on zero, for a first scale of 1.
MINIMUM = {Type.Q4_1: -7.5, Type.Q5_1: -15.5, Type.Q2_K: 1.5, Type.Q4_K: 7.5, Type.Q5_K: 15.5}
ROUNDED = (Type.Q5_1, Type.Q5_K, Type.Q2_K, Type.IQ4_XS)  # held at 8 bits
FOUR_BITS = (Type.Q4_0, Type.Q4_1, Type.Q4_K)


def type_of(types, name):
    return types.get(name.split(".")[-2])


def random_blocks(rng, kind, rows, cols, spread):
    """Blocks of random bits [rows, bytes] whose scales give the values a standard deviation of about `spread`."""
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = rng.integers(0, 256, (rows * cols // elements, size), dtype=np.uint8)
    offsets = block_formats.SCALES[kind]

    def set_scales(scale):
        for offset, factor in zip(offsets, (1, MINIMUM.get(kind))):
            blocks[:, offset:offset + 2] = (scale * factor).astype("<f2").view(np.uint8).reshape(-1, 2)

    ones = np.ones(len(blocks))
    set_scales(ones)
    unit = gguf.dequantize(blocks[:64], kind).std()
    set_scales(ones * spread / unit * rng.uniform(0.6, 1.4, len(blocks)))
    return blocks.reshape(rows, -1)


def rounded(x, most):
    """Rounds groups of 32 of the last dimension to multiples of their largest magnitude divided by `most`."""
    groups = x.reshape(*x.shape[:-1], -1, 32)
    scale = groups.abs().amax(-1, keepdim=True).clamp_min(1e-30) / most
    return ((groups / scale).round() * scale).reshape(x.shape)


def bf16(x):
    return x.to(torch.bfloat16).to(torch.float32)


class Runner(model_golden.Runner):
    def __init__(self, model, types):
        super().__init__(model, torch.float32)
        self.types = types

    def exact(self, ids):
        self.model.double()
        try:
            return super().logits(ids)
        finally:
            self.model.float()

    def logits(self, ids):
        return self.with_linear(ids, lambda kind, x, weight: (rounded(x, 16319), weight))

    def with_rounded_inputs(self, ids):
        def change(kind, x, weight):
            return (rounded(x, 127), weight) if kind in FOUR_BITS else (bf16(x), bf16(weight))

        return self.with_linear(ids, change)

    def with_f16_cache(self, ids):
        self.model.set_attn_implementation("f16_cache")
        try:
            return super().logits(ids)
        finally:
            self.model.set_attn_implementation("eager")

    def with_linear(self, ids, change):
        exact = torch.nn.functional.linear
        kinds = {p.data_ptr(): type_of(self.types, name) for name, p in self.model.named_parameters()}

        def linear(x, weight, bias=None):
            kind = kinds[weight.data_ptr()]
            return exact(*change(kind, x, rounded(weight, 127) if kind in ROUNDED else weight), bias)

        torch.nn.functional.linear = linear
        try:
            return super().logits(ids)
        finally:
            torch.nn.functional.linear = exact


def randomise(model, types, seed):
    """Fills the model; returns what is stored: name to (bytes or f32 values, format or nothing)."""
    rng, stored = np.random.default_rng(seed), {}
    for name, parameter in model.named_parameters():
        kind = type_of(types, name)
        if kind is None:
            data = values = (1.2 + 0.4 * rng.standard_normal(parameter.shape)).astype(np.float32)
        else:
            spread = {"embed_tokens": 0.7, "lm_head": 0.25}.get(name.split(".")[-2], 1.3 / np.sqrt(parameter.shape[1]))
            data = random_blocks(rng, kind, *parameter.shape, spread)
            values = gguf.dequantize(data, kind)
        parameter.data = torch.from_numpy(values.copy())
        stored[name] = (data, kind)
    return stored


def write_gguf(out, stored, config):
    writer = gguf.GGUFWriter(out, "qwen3")
    writer.add_name(out.stem)
    gguf_models.write_config(writer, config.to_dict(), dict(config.rope_parameters), config.head_dim)
    gguf_models.write_tokenizer(writer, OUT / "qwen3_sharded", config.vocab_size)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.QWEN3, config.num_hidden_layers)
    for name, (data, kind) in stored.items():
        writer.add_tensor(names.get_name(name, try_suffixes=(".weight",)), data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def build(name, types, tokenizer):
    prompt = tokenizer.encode(TEXT).ids
    config = model_golden.make_config(Qwen3Config, SETTINGS)
    model = AutoModelForCausalLM.from_config(config, **EAGER).float()
    runner = Runner(model, types)
    for seed in range(1, 20000):
        stored = randomise(model, types, seed)
        if model_golden.find_reply(runner, tokenizer, prompt):
            break
    else:
        raise SystemExit("no seed gives clear greedy choices")
    data = model_golden.expected(runner, tokenizer, prompt, seed, dict(long=True))
    folder = OUT / name
    folder.mkdir(exist_ok=True)
    (folder / "expected.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")
    out = OUT.parent / "gguf" / f"{name}.gguf"
    write_gguf(out, stored, config)
    print(f"{name}: seed {seed}, {out.stat().st_size // 1024} KiB, noise {data['noise']}", flush=True)


def main():
    model_golden.logging.disable_progress_bar()
    torch.set_num_threads(1)
    tokenizer = model_golden.make_tokenizer()
    for name, types in MODELS.items():
        build(name, types, tokenizer)


if __name__ == "__main__":
    main()
