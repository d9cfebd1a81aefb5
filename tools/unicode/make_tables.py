#!/usr/bin/env python3
"""Writes class_tables.h and normalization_tables.h by asking Hugging Face `tokenizers` about every code point.

The ids of a text must not depend on which Unicode version some library has, but only on what the reference package
does, and its parts do not agree among themselves (its regex engine, its digit splitter, its added-token matcher and
its normaliser each carry tables of their own age). So nothing is taken from a Unicode data file: each class and each
normalisation rule is observed. Takes about half a minute.

usage: make_tables.py [--check] [FOLDER]     --check compares with the files in FOLDER instead of writing them
"""

import pathlib
import sys
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

DEFAULT_FOLDER = pathlib.Path(__file__).resolve().parents[2] / "src/tokenizer"
LIMIT = 0x110000
ALL = [c for c in range(LIMIT) if not 0xD800 <= c < 0xE000]
BLOCK = 128

# Bits of a class byte; src/tokenizer/characters.h names them in the same order.
LETTER, NUMBER, SPACE, MARK, UPPER, LOWER, NUMERIC, WORD = (1 << i for i in range(8))


def chunks(items, size=1 << 15):
    for i in range(0, len(items), size):
        yield items[i : i + size]


def matched_by(pattern):
    """Code points that the regex engine matches with a pattern for one character."""
    split = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
    found = set()
    for part in chunks(ALL):
        for piece, _ in split.pre_tokenize_str("".join(map(chr, part))):
            found.update(map(ord, piece))
    return found


def split_as_digits():
    """Code points that the Digits pre-tokenizer sets apart."""
    digits = pre_tokenizers.Digits(individual_digits=True)
    found = set()
    for part in chunks(ALL):
        for piece, _ in digits.pre_tokenize_str("".join("a" + chr(c) for c in part)):
            if not piece.startswith("a"):
                found.update(map(ord, piece))
    return found


def added_token_classes():
    """Code points that end a word beside a single_word token, and those that rstrip removes."""
    token = chr(0xE000)
    vocab = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}

    def probe(**flags):
        tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[]))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.add_tokens([AddedToken(token, normalized=False, **flags)])
        return tokenizer

    word, space = set(), set()
    single, strip = probe(single_word=True), probe(rstrip=True)
    added = single.token_to_id(token)
    for part in chunks(ALL, 1 << 13):
        for c, encoding in zip(part, single.encode_batch([token + chr(c) for c in part])):
            if encoding.ids[0] != added:
                word.add(c)
        for c, encoding in zip(part, strip.encode_batch([token + chr(c) for c in part])):
            if len(encoding.ids) == 1:
                space.add(c)
    word.discard(ord(token))
    space.discard(ord(token))
    return word, space


def character_classes():
    spaces = matched_by(r"\s")
    word, stripped = added_token_classes()
    assert stripped == spaces, "added tokens strip other spaces than the regex engine sees"
    letters = matched_by(r"\p{L}")
    assert letters == set().union(*(matched_by(r"\p{%s}" % c) for c in ("Lu", "Ll", "Lt", "Lm", "Lo")))
    sets = {
        LETTER: letters,
        NUMBER: matched_by(r"\p{N}"),
        SPACE: spaces,
        MARK: matched_by(r"\p{M}"),
        UPPER: matched_by(r"[\p{Lu}\p{Lt}]"),
        LOWER: matched_by(r"\p{Ll}"),
        NUMERIC: split_as_digits(),
        WORD: word,
    }
    table = bytearray(LIMIT)
    for bit, members in sets.items():
        for c in members:
            table[c] |= bit
    return table


def decompositions():
    """Full canonical decomposition of every code point that has one, Hangul syllables left out."""
    nfd = normalizers.NFD()
    result = {}
    for c in ALL:
        if 0xAC00 <= c < 0xD7A4:
            continue
        d = nfd.normalize_str(chr(c))
        if d != chr(c):
            result[c] = tuple(map(ord, d))
    return result


def combining_classes(decomposed):
    """Canonical combining class of every code point, found by watching which neighbours change places."""
    nfd = normalizers.NFD()
    lowest, highest = 0x0334, 0x0345  # of classes 1 and 240

    def swaps(x, y):
        return nfd.normalize_str("a" + chr(x) + chr(y)) == "a" + chr(y) + chr(x) and x != y

    assert unicodedata.combining(chr(lowest)) == 1 and unicodedata.combining(chr(highest)) == 240
    marks = [
        c
        for c in ALL
        if c not in decomposed and (c in (lowest, highest) or swaps(c, lowest) or swaps(highest, c))
    ]
    # The reference may be older than Python's tables: only marks that it knows can stand for their class.
    representative = {}
    for c in marks:
        if k := unicodedata.combining(chr(c)):
            representative.setdefault(k, c)
    order = sorted(representative)
    for low, high in zip(order, order[1:]):
        assert swaps(representative[high], representative[low]), (low, high)
    result = {}
    for c in marks:
        same = [k for k in order if not swaps(c, representative[k]) and not swaps(representative[k], c)]
        assert len(same) == 1, (hex(c), same)
        result[c] = same[0]
    return result


def compositions(decomposed):
    """{(first, second): composite} for every pair that composes."""
    nfc = normalizers.NFC()
    result = {}
    for c, d in decomposed.items():
        if nfc.normalize_str("".join(map(chr, d))) != chr(c):
            continue
        head = nfc.normalize_str("".join(map(chr, d[:-1])))
        assert len(head) == 1, hex(c)
        assert nfc.normalize_str(head + chr(d[-1])) == chr(c), hex(c)
        result[ord(head), d[-1]] = c
    for c in ALL:  # a pair that Unicode knows and the reference composes must be among them
        parts = unicodedata.decomposition(chr(c)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            pair = tuple(int(p, 16) for p in parts)
            composed = nfc.normalize_str(chr(pair[0]) + chr(pair[1])) == chr(c)
            assert composed == (result.get(pair) == c), hex(c)
    return result


def normalization_properties(classes, decomposed, composed):
    """A byte for each code point: index of its combining class, plus 64 where NFC may compose it with what stands
    before it, plus 128 where NFC never leaves it as it is."""
    nfc = normalizers.NFC()
    values = [0] + sorted(set(classes.values()))
    assert len(values) <= 64
    table = bytearray(LIMIT)
    for c, k in classes.items():
        table[c] = values.index(k)
    for _, second in composed:
        table[second] |= 64
    for c in list(range(0x1161, 0x1176)) + list(range(0x11A8, 0x11C3)):  # Hangul vowels and final consonants
        table[c] |= 64
    for c in decomposed:
        if nfc.normalize_str(chr(c)) != chr(c):
            table[c] |= 128
    return values, table


def two_stage(table):
    blocks, index = {}, []
    for i in range(0, LIMIT, BLOCK):
        index.append(blocks.setdefault(bytes(table[i : i + BLOCK]), len(blocks)))
    return index, b"".join(blocks)


def array(kind, name, values):
    lines, line = [], ""
    for value in values:
        item = f"{value},"
        if len(line) + len(item) > 110:
            lines.append(line)
            line = ""
        line += item
    lines.append(line)
    return f"inline constexpr std::array<{kind}, {len(values)}> {name}{{\n" + "\n".join(lines) + "\n};\n"


def header(arrays):
    top = (
        f"// Made by tools/unicode/make_tables.py from Hugging Face tokenizers {tokenizers.__version__}; do not edit.\n"
        "// clang-format off\n"
        "#pragma once\n\n#include <array>\n#include <cstddef>\n#include <cstdint>\n\nnamespace qgen::unicode {\n"
    )
    return "\n".join([top, *arrays, "}  // namespace qgen::unicode\n"])


def class_tables():
    index, blocks = two_stage(character_classes())
    return header(
        [
            f"inline constexpr std::size_t kClassBlockSize = {BLOCK};\n",
            array("std::uint16_t", "kClassIndex", index),
            array("std::uint8_t", "kClassBlocks", blocks),
        ]
    )


def normalization_tables():
    decomposed = decompositions()
    composed = compositions(decomposed)
    classes, properties = normalization_properties(combining_classes(decomposed), decomposed, composed)
    index, blocks = two_stage(properties)
    sources, ends, pool = [], [], []
    for c in sorted(decomposed):
        pool.extend(decomposed[c])
        sources.append(c)
        ends.append(len(pool))
    pairs = sorted(composed.items())
    return header(
        [
            f"inline constexpr std::size_t kNormBlockSize = {BLOCK};\n",
            array("std::uint16_t", "kNormIndex", index),
            array("std::uint8_t", "kNormBlocks", blocks),
            array("std::uint8_t", "kCombiningClasses", classes),
            array("char32_t", "kDecomposed", sources),
            array("std::uint16_t", "kDecompositionEnds", ends),
            array("char32_t", "kDecompositions", pool),
            array("char32_t", "kComposeFirst", [first for (first, _), _ in pairs]),
            array("char32_t", "kComposeSecond", [second for (_, second), _ in pairs]),
            array("char32_t", "kComposite", [composite for _, composite in pairs]),
        ]
    )


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    folder = pathlib.Path(arguments[0]) if arguments else DEFAULT_FOLDER
    for name, make in [("class_tables.h", class_tables), ("normalization_tables.h", normalization_tables)]:
        text = make()
        if "--check" not in sys.argv[1:]:
            (folder / name).write_text(text)
        elif (folder / name).read_text() != text:
            sys.exit(f"{folder / name} differs from what tokenizers {tokenizers.__version__} does")


if __name__ == "__main__":
    main()
