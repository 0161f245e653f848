"""What all contestants read: model folders with sifr's first weights, token ids, text, a tokenizer.
Made once, below .cache/bench."""
import array
import glob
import json
import os
import random
import shutil
import subprocess

from harness import CACHE, ROOT

STEPS = 16              # of ids in a file of batches
TOKENS = 4096           # a step


def gpt2_config(tiny, positions):
    return {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
            "vocab_size": 512 if tiny else 50257, "n_embd": 64 if tiny else 768,
            "n_layer": 2 if tiny else 12, "n_head": 4 if tiny else 12, "n_positions": positions,
            "activation_function": "gelu_new", "resid_pdrop": 0.0, "embd_pdrop": 0.0,
            "attn_pdrop": 0.0, "layer_norm_epsilon": 1e-5, "initializer_range": 0.02,
            "tie_word_embeddings": True, "torch_dtype": "float32"}


def llama_config(tiny, positions):
    heads = 4 if tiny else 12
    return {"model_type": "llama", "architectures": ["LlamaForCausalLM"],
            "vocab_size": 512 if tiny else 32000, "hidden_size": 64 if tiny else 768,
            "num_hidden_layers": 2 if tiny else 12, "num_attention_heads": heads,
            "num_key_value_heads": heads, "intermediate_size": 176 if tiny else 2048,
            "max_position_embeddings": positions, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
            "hidden_act": "silu", "attention_dropout": 0.0, "initializer_range": 0.02,
            "tie_word_embeddings": False, "torch_dtype": "float32"}


class Inputs:
    def __init__(self, build, tiny=False):
        self.tiny = tiny
        self.build = os.path.join(ROOT, build)
        self.sifr = os.path.join(self.build, "sifr")
        self.folder = os.path.join(CACHE, "tiny" if tiny else "inputs")
        os.makedirs(self.folder, exist_ok=True)

    def program(self, name):
        return os.path.join(self.build, name)

    def path(self, name):
        return os.path.join(self.folder, name)

    def ask(self, *arguments):
        """Runs sifr; its own message is the error's."""
        done = subprocess.run([self.sifr, *arguments], capture_output=True, text=True,
                              timeout=300, check=False)
        if done.returncode:
            raise RuntimeError((done.stderr or done.stdout).strip()[-300:])

    def model(self, name, length):
        """Folder of `gpt2` or `llama` for sequences of `length`, with the first weights that
        `sifr init` makes."""
        positions = max(length, 64) if name == "gpt2" else max(length, 4096)
        folder = self.path(f"{name}-{positions}")
        config = gpt2_config(self.tiny, positions) if name == "gpt2" \
            else llama_config(self.tiny, positions)
        text = json.dumps(config, indent=1)
        kept = os.path.join(folder, "made-of.json")
        if not (os.path.exists(kept) and open(kept).read() == text):
            shutil.rmtree(folder, ignore_errors=True)
            with open(self.path("config.json"), "w") as f:
                f.write(text)
            self.ask("init", "--config", self.path("config.json"), "--tokenizer", self.tokenizer(),
                     "--output", folder, "--seed", "1")
            with open(kept, "w") as f:
                f.write(text)
        return folder

    def adapter(self, model):
        """An adapter folder of a model folder: LoRA on all of its products, after one step. It lies
        in the model's folder, and goes with it."""
        folder = os.path.join(model, "adapter")
        if not os.path.exists(os.path.join(folder, "adapter_model.safetensors")):
            shutil.rmtree(folder, ignore_errors=True)
            with open(self.path("lora.json"), "w") as f:
                json.dump({"sifr": {"lora": {"r": 16, "lora_alpha": 32,
                                             "target_modules": "all-linear"}}}, f)
            self.ask("train", "--config", self.path("lora.json"), "--model", model, "--data",
                     self.store(), "--output", folder, "--seq-length", "16",
                     "--per-device-train-batch-size", "1", "--max-steps", "1",
                     "--learning-rate", "1e-3")
        return folder

    def batches(self, words):
        """32-bit ids, TOKENS a step. Small ids are the frequent ones, so that the loss falls."""
        path = self.path(f"batches-{words}.bin")
        if not os.path.exists(path):
            numbers = random.Random(1)
            ids = array.array("i", (int(words * numbers.random() ** 3)
                                    for _ in range(STEPS * TOKENS)))
            with open(path + ".new", "wb") as f:
                ids.tofile(f)
            os.rename(path + ".new", path)
        return path

    def words(self, name):
        return (gpt2_config if name == "gpt2" else llama_config)(self.tiny, 64)["vocab_size"]

    def text(self):
        """A folder of plain text: the demo's where its package is installed, else sifr's own."""
        folder = self.path("text")
        if os.path.isdir(folder):
            return folder
        new = folder + ".new"
        shutil.rmtree(new, ignore_errors=True)
        script = os.path.join(ROOT, "scripts", "demo-text.sh")
        if not self.tiny and shutil.which("bible") and \
                subprocess.run([script, new], capture_output=True, check=False).returncode == 0:
            os.rename(os.path.join(new, "train"), folder)
            shutil.rmtree(new)
            return folder
        os.makedirs(new)
        sources = glob.glob(os.path.join(ROOT, "docs", "*.md"))
        if not self.tiny:
            sources += glob.glob(os.path.join(ROOT, "src", "**", "*.c"), recursive=True)
        for source in sorted(sources):
            shutil.copy(source, os.path.join(new, os.path.basename(source) + ".txt"))
        os.rename(new, folder)
        return folder

    def documents(self):
        """A folder of documents of some 2 KB, 50 MB in all: lines of the text in random order."""
        folder = self.path("documents")
        if os.path.isdir(folder):
            return folder
        new = folder + ".new"
        shutil.rmtree(new, ignore_errors=True)
        os.makedirs(new)
        lines = []
        for path in sorted(glob.glob(os.path.join(self.text(), "*"))):
            with open(path, encoding="utf-8", newline="") as f:
                lines += [line for line in f.read().splitlines() if line.strip()]
        numbers, left, count = random.Random(1), 200_000 if self.tiny else 50_000_000, 0
        while left > 0:
            text = ""
            while len(text) < 2000:
                text += numbers.choice(lines) + "\n"
            with open(os.path.join(new, f"{count:06}.txt"), "w", encoding="utf-8") as f:
                left -= f.write(text)
            count += 1
        os.rename(new, folder)
        return folder

    def tokenizer(self, kind="bpe"):
        folder = self.path("tokenizer" if kind == "bpe" else f"tokenizer-{kind}")
        if not os.path.isdir(folder):
            self.ask("tokenizer", "train", "--type", kind, "--vocab-size",
                     "512" if self.tiny else "16000", "--data", self.text(), "--output", folder)
            if kind == "wordpiece":     # which has no end of text of its own
                with open(os.path.join(folder, "tokenizer_config.json"), "r+",
                          encoding="utf-8") as f:
                    config = {**json.load(f), "eos_token": "[SEP]"}
                    f.seek(0)
                    json.dump(config, f, indent=2)
        return folder

    def store(self):
        prefix = self.path("tokens")
        if not os.path.exists(prefix + ".idx"):
            self.ask("tokenize", "--tokenizer", self.tokenizer(), "--data", self.text(),
                     "--output", prefix)
        return prefix
