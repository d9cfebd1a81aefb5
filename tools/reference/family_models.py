#!/usr/bin/env python3
"""Writes random models of four families, wide enough for GGUF's blocks of 256, for llama_compare.py.

  pip install torch transformers safetensors
  family_models.py FOLDER
  qgen quantize -m FOLDER/qwen3 --type f32 -o qwen3-f32.gguf      # and the other types
  llama-quantize --pure qwen3-f32.gguf qwen3-Q5_1.gguf Q5_1       # of llama.cpp, and the other types

Their tokenizers are those of the small models in tests/golden/models."""

import argparse
import json
import shutil
from pathlib import Path

import torch
import transformers as hf

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden" / "models"
SHAPE = dict(hidden_size=256, intermediate_size=512, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=512, initializer_range=0.08, tie_word_embeddings=False)
EXPERTS = dict(head_dim=64, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=256, norm_topk_prob=True)
# name: (config, model, whose tokenizer, settings)
FAMILIES = {
    "qwen2": (hf.Qwen2Config, hf.Qwen2ForCausalLM, "qwen2", {}),
    "qwen3": (hf.Qwen3Config, hf.Qwen3ForCausalLM, "qwen3_sharded", dict(head_dim=64)),
    "qwen3moe": (hf.Qwen3MoeConfig, hf.Qwen3MoeForCausalLM, "qwen3_moe", EXPERTS),
    "llama": (hf.LlamaConfig, hf.LlamaForCausalLM, "llama3", dict(head_dim=64)),
}


def build(config, model, tokenizer, settings):
    vocab = json.loads((GOLDEN / tokenizer / "config.json").read_text())["vocab_size"]
    built = model(config(vocab_size=vocab, **SHAPE, **settings)).to(torch.bfloat16)
    for name, parameter in built.named_parameters():
        if parameter.ndim == 1:
            noise = 0.3 * torch.randn_like(parameter.float())
            parameter.data = (noise + 1 if "norm" in name else noise).to(torch.bfloat16)
    return built


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    torch.manual_seed(5)
    for name, (config, model, tokenizer, settings) in FAMILIES.items():
        build(config, model, tokenizer, settings).save_pretrained(folder / name)
        for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
            shutil.copy(GOLDEN / tokenizer / file, folder / name)


if __name__ == "__main__":
    main()
