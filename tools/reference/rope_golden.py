#!/usr/bin/env python3
"""Writes tests/models/rope_golden.json: rotary frequencies that Hugging Face transformers computes for config.json files
in both dialects.

    pip install torch transformers
    tools/reference/rope_golden.py
"""

import json
import pathlib
import tempfile

from transformers import AutoConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "models" / "rope_golden.json"
YARN = {"factor": 4.0, "original_max_position_embeddings": 32768}
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}

# name: (head_dim, max_position_embeddings, members of config.json)
CASES = {
    "qwen3": (128, 40960, {"rope_theta": 1000000, "rope_scaling": None}),
    "qwen3_new_dialect": (128, 40960, {"rope_parameters": {"rope_type": "default", "rope_theta": 1000000}}),
    "theta_not_stated": (64, 2048, {}),
    "no_power_of_two": (80, 4096, {"rope_theta": 10000.0}),
    "linear_old": (64, 8192, {"rope_theta": 10000.0, "rope_scaling": {"type": "linear", "factor": 3.0}}),
    "yarn_type": (128, 131072, {"rope_theta": 1e6, "rope_scaling": {"type": "yarn", **YARN}}),
    "yarn_rope_type": (128, 131072, {"rope_theta": 1e6, "rope_scaling": {"rope_type": "yarn", **YARN}}),
    "yarn_new_dialect": (128, 131072, {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e6, **YARN}}),
    "yarn_short_config": (128, 40960, {"rope_theta": 1e6, "rope_scaling": {"rope_type": "yarn", **YARN}}),
    "yarn_betas": (
        64,
        16384,
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "beta_fast": 16, "beta_slow": 2,
                             "original_max_position_embeddings": 2048}},
    ),
    "yarn_not_truncated": (
        64,
        131072,
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 150000, "factor": 32.0, "truncate": False,
                             "original_max_position_embeddings": 4096}},
    ),
    "yarn_mscale": (
        64,
        163840,
        {"rope_theta": 10000, "rope_scaling": {"type": "yarn", "factor": 40, "mscale": 0.707, "mscale_all_dim": 1.0,
                                               "beta_fast": 32, "beta_slow": 1,
                                               "original_max_position_embeddings": 4096}},
    ),
    "yarn_attention_factor": (
        64,
        16384,
        {"rope_theta": 1e4, "rope_scaling": {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.25,
                                             "original_max_position_embeddings": 4096}},
    ),
    "yarn_original_not_stated": (64, 4096, {"rope_theta": 1e4, "rope_scaling": {"rope_type": "yarn", "factor": 2.0}}),
    "yarn_factor_null": (
        64,
        16384,
        {"rope_theta": 1e4, "rope_scaling": {"rope_type": "yarn", "factor": None,
                                             "original_max_position_embeddings": 2048}},
    ),
    "llama31": (128, 131072, {"rope_theta": 500000.0, "rope_scaling": {"rope_type": "llama3", "factor": 8.0, **LLAMA3}}),
    "llama32": (
        64,
        131072,
        {"rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, **LLAMA3}},
    ),
}


def compute(head_dim, positions, members):
    config = {
        "model_type": "llama",
        "hidden_size": 4 * head_dim,
        "num_attention_heads": 4,
        "num_hidden_layers": 1,
        "intermediate_size": 8,
        "vocab_size": 8,
        "head_dim": head_dim,
        "max_position_embeddings": positions,
        **members,
    }
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "config.json").write_text(json.dumps(config))
        rope = LlamaRotaryEmbedding(AutoConfig.from_pretrained(folder))
    return {
        "config": json.dumps(config),
        "inv_freq": [float(f"{x:.9g}") for x in rope.inv_freq.tolist()],
        "scale": rope.attention_scaling,
    }


def main():
    lines = [f"{json.dumps(name)}: {json.dumps(compute(*case))}" for name, case in CASES.items()]
    OUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
