"""tools/bench/make_model writes a complete, well-formed and repeatable model folder."""

import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MAKE_MODEL = Path(__file__).resolve().parents[2] / "tools" / "bench" / "make_model"
FILES = {"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}


def make(folder, *options):
    return subprocess.run([sys.executable, MAKE_MODEL, "--preset", "tiny", "-o", folder, *options],
                          capture_output=True, text=True, check=False)


def read_safetensors(path):
    data = path.read_bytes()
    length = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__")
    return header, data[8 + length:], 8 + length


class MakeModelTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name, "a model")

    def make(self, *options):
        result = make(self.folder, *options)
        self.assertEqual(result.returncode, 0, result.stderr)

    def json(self, name):
        return json.loads((self.folder / name).read_text(encoding="utf-8"))

    def test_all_files_and_no_leftovers(self):
        self.make()
        self.assertEqual(set(os.listdir(self.folder)), FILES)

    def test_tensors_tile_the_file_and_fit_the_config(self):
        self.make("--layers", "3")
        config = self.json("config.json")
        header, data, start = read_safetensors(self.folder / "model.safetensors")
        self.assertEqual(start % 8, 0)
        end = 0
        for name, tensor in header.items():
            self.assertEqual(tensor["data_offsets"][0], end, name)
            self.assertEqual(tensor["data_offsets"][1] - end, 2 * math.prod(tensor["shape"]), name)
            self.assertEqual(tensor["dtype"], "BF16")
            end = tensor["data_offsets"][1]
        self.assertEqual(end, len(data))
        self.assertEqual(len(header), 2 + 3 * 11)
        heads = config["num_attention_heads"] * config["head_dim"]
        self.assertEqual(header["model.embed_tokens.weight"]["shape"], [config["vocab_size"], config["hidden_size"]])
        self.assertEqual(header["model.layers.2.self_attn.o_proj.weight"]["shape"], [config["hidden_size"], heads])
        self.assertEqual(header["model.layers.2.mlp.down_proj.weight"]["shape"],
                         [config["hidden_size"], config["intermediate_size"]])

    def test_mixtures_have_every_expert_and_a_head_of_their_own(self):
        self.make("--preset", "tiny-moe")
        config = self.json("config.json")
        header, data, _ = read_safetensors(self.folder / "model.safetensors")
        self.assertEqual(max(tensor["data_offsets"][1] for tensor in header.values()), len(data))
        self.assertEqual(len(header), 3 + config["num_hidden_layers"] * (9 + 3 * config["num_experts"]))
        self.assertIn("lm_head.weight", header)
        width, inner = config["hidden_size"], config["moe_intermediate_size"]
        self.assertEqual(header["model.layers.1.mlp.gate.weight"]["shape"], [config["num_experts"], width])
        self.assertEqual(header["model.layers.1.mlp.experts.7.up_proj.weight"]["shape"], [inner, width])
        self.assertEqual(header["model.layers.1.mlp.experts.7.down_proj.weight"]["shape"], [width, inner])

    def test_values_are_small_and_random_and_norms_are_one(self):
        for dtype, item, decode in (("f32", 4, "f"), ("f16", 2, "e"), ("bf16", 2, None)):
            self.make("--dtype", dtype)
            header, data, _ = read_safetensors(self.folder / "model.safetensors")

            def values(name):
                begin, end = header[name]["data_offsets"]
                count = (end - begin) // item
                if decode:
                    return struct.unpack(f"<{count}{decode}", data[begin:end])
                return struct.unpack(f"<{count}f", b"".join(b"\0\0" + data[i:i + 2] for i in range(begin, end, 2)))

            self.assertEqual(set(values("model.norm.weight")), {1.0}, dtype)
            weights = values("model.layers.0.mlp.gate_proj.weight")
            deviation = math.sqrt(sum(w * w for w in weights) / len(weights))
            self.assertTrue(0.018 < deviation < 0.022, (dtype, deviation))
            self.assertGreater(len(set(weights)), 1000 if dtype != "bf16" else 500)

    def test_same_seed_same_bytes(self):
        weights = []
        for seed in ("1", "1", "2"):
            self.make("--seed", seed)
            weights.append((self.folder / "model.safetensors").read_bytes())
        self.assertEqual(weights[0], weights[1])
        self.assertNotEqual(weights[0], weights[2])

    def test_tokenizer_has_every_byte_every_merge_and_the_end_tokens(self):
        self.make()
        tokenizer, config = self.json("tokenizer.json"), self.json("config.json")
        vocab = tokenizer["model"]["vocab"]
        self.assertEqual(sorted(vocab.values()), list(range(len(vocab))))
        self.assertEqual(sum(len(piece) == 1 for piece in vocab), 256)
        for left, right in tokenizer["model"]["merges"]:
            self.assertIn(left, vocab)
            self.assertIn(right, vocab)
            self.assertIn(left + right, vocab)
        added = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
        self.assertEqual(min(added), len(vocab))
        self.assertLessEqual(max(added), config["vocab_size"] - 1)
        ends = self.json("generation_config.json")["eos_token_id"]
        self.assertEqual([added[i] for i in ends], ["<|im_end|>", "<|endoftext|>"])

    def test_bad_options_write_nothing(self):
        for options in (["--layers", "0"], ["--preset", "none"], ["--dtype", "f64"]):
            self.assertEqual(make(self.folder, *options).returncode, 2)
        self.assertFalse(self.folder.exists())


if __name__ == "__main__":
    unittest.main()
