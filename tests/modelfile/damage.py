"""Ways to damage a model file: a mutation takes random choices and the files, and returns other files.

Some leave the digests alone (accidents), some write new ones (forgeries); the latter may end in another valid model.
"""

import base64
import hashlib
import json
import struct
from collections.abc import Callable
from copy import deepcopy

import numpy as np

from fairbits.modelfile.boosted_trees import NODE
from fairbits.modelfile.manifest import MANIFEST, MODEL, SEALED, WEIGHTS, entry_of, manifest_of

Files = dict[str, bytes]
Mutation = Callable[[np.random.Generator, Files], Files]


# ---------------------------------------------------------------------- bytes


def flip_bits(rng, data):
    changed = bytearray(data)
    for place in rng.integers(0, len(data), rng.integers(1, 4)):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def truncate(rng, data):
    return data[: rng.integers(0, len(data))]


def insert(rng, data):
    place = rng.integers(0, len(data) + 1)
    return data[:place] + rng.bytes(int(rng.integers(1, 40))) + data[place:]


def cut_out(rng, data):
    start, stop = np.sort(rng.integers(0, len(data) + 1, 2))
    return data[:start] + data[stop:]


def repeat(rng, data):
    start, stop = np.sort(rng.integers(0, len(data) + 1, 2))
    return data[:stop] + data[start:]


def blank(rng, data):
    start, stop = np.sort(rng.integers(0, len(data) + 1, 2))
    return data[:start] + bytes([int(rng.choice([0, 32, 255]))]) * int(stop - start) + data[stop:]


def replace(rng, data):
    pickled = b"\x80\x04cos\nsystem\n(S'true'\ntR."
    texts = [b"", b"{}", b"[]", b"null", pickled, b"[" * 5000, b"PK\x03\x04", rng.bytes(100)]
    return texts[rng.integers(len(texts))]


BYTES = [flip_bits, truncate, insert, cut_out, repeat, blank, replace]


def damaged_file(rng, files):
    name = rng.choice(list(files))
    return {**files, name: BYTES[rng.integers(len(BYTES))](rng, files[name])}


def swapped_files(rng, files):
    first, second = rng.choice(list(files), 2, replace=False)
    return {**files, first: files[second], second: files[first]}


def missing_file(rng, files):
    name = rng.choice(list(files))
    return {other: data for other, data in files.items() if other != name}


# ---------------------------------------------------------------------- JSON


def places(value, path=()):
    """All paths to values within nested objects and lists."""
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


def at(tree, path):
    for key in path:
        tree = tree[key]
    return tree


ODD = [
    None, True, False, 0, 1, -1, 2, 7, 255, 2**31, 2**53, 2**63, 2**64, 10**30, 10**400, -(10**18),
    0.5, -0.5, 1e-320, 1e308, -1e308, float("nan"), float("inf"),
    "", "x", "a" * 10_000, "\x00", "\ud800", "../../etc/passwd", "__import__('os')", "0" * 64,
    [], {}, [1], ["a", "b"], [[]], [10**9] * 3, [1] * 400, list(range(20_000)), {"a": 1}, {"kind": "method"},
    "VFAEClassifier", "BinaryMIClassifier", "cuda:0", "each", "intersection", "float64", "object",
]  # fmt: skip


NESTED = ["nested 3", "nested 50", "nested 900", "nested 9000"]


def of_the_same_type(rng, value, tree):
    """Another value of the same type: what a check of types alone lets pass."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return int(rng.choice([0, 1, 2, value + 1, value - 1, 2 * value, 10**4, 10**6, 10**9, 2**52]))
    if isinstance(value, float):
        return float(rng.choice([0.0, 0.5, 1.0, -value, 10 * value, 1e-30, 1e30, 1e300]))
    if isinstance(value, str):
        texts = [text for path in places(tree) if isinstance(text := at(tree, path), str)]
        return str(rng.choice([*texts, *(text for text in ODD if isinstance(text, str) and text.isprintable())]))
    if isinstance(value, list) and value:
        item = int(rng.integers(len(value)))
        return [value[:item] + value[item + 1 :], [*value, value[item]], value[::-1], value * 50][rng.integers(4)]
    if isinstance(value, dict) and value:
        left_out = rng.choice(list(value))
        return {key: item for key, item in value.items() if key != left_out}
    return deepcopy(ODD[rng.integers(len(ODD))])


def change_once(rng, tree):
    """Replace, remove, rename, add, repeat or exchange one value of a tree."""
    spots = places(tree)
    path = spots[rng.integers(len(spots))]
    parent, key = at(tree, path[:-1]), path[-1]
    new, kind = deepcopy(ODD[rng.integers(len(ODD))]), rng.integers(14)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[f"{key}_"] = parent.pop(key)
    elif kind == 2 and isinstance(parent, dict):
        parent[str(rng.choice(["__class__", "__reduce__", "py/object", "more", "kind", ""]))] = new
    elif kind == 3:
        parent[key] = deepcopy(at(tree, spots[rng.integers(len(spots))]))
    elif kind == 4:
        parent[key] = str(rng.choice(NESTED))
    elif kind == 5:
        parent[key] = new
    else:
        parent[key] = of_the_same_type(rng, parent[key], tree)


def change_json(rng, tree):
    """Change one value of a tree, sometimes a few."""
    tree = deepcopy(tree)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        if places(tree):
            change_once(rng, tree)
    return tree


def dumps(tree, indent=None):
    """Text of a tree, with lists within lists where it says so: Python's own writer cannot nest as deep."""
    text = json.dumps(tree, indent=indent)
    for name in NESTED:
        depth = int(name.split()[1])
        text = text.replace(f'"{name}"', "[" * depth + "]" * depth)
    return text.encode()


def change_text(rng, data):
    """Change a text as no writer of JSON would: keys twice, constants, comments, numbers of many digits."""
    text = data.decode()
    numbers = [i for i, c in enumerate(text) if c.isdigit() and not text[i - 1].isalnum()]
    place = numbers[rng.integers(len(numbers))]
    odd = ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "0x1", "01", "1_0", "-", "1.", ".5", "1 1", "'a'", "//"]
    kind = rng.integers(3)
    if kind == 0:
        keys = [i for i, c in enumerate(text) if c == "{"]
        place = keys[rng.integers(len(keys))]
        key = text[place:].split('"')[1] if '"' in text[place:] else "a"
        return (text[: place + 1] + f'"{key}": 1, ' + text[place + 1 :]).encode()
    if kind == 1:
        return (text[:place] + odd[rng.integers(len(odd))] + text[place + 1 :]).encode(errors="surrogatepass")
    return b"\xef\xbb\xbf" + data if rng.random() < 0.5 else text.encode("utf-16")


# ---------------------------------------------------------------------- forgeries: damage, then digests that are right


def sealed(files):
    entries = {name: entry_of(files[name]) for name in sorted(SEALED) if name in files}
    return {**files, MANIFEST: manifest_of(entries)}


def forged_model(rng, files):
    return sealed({**files, MODEL: dumps(change_json(rng, json.loads(files[MODEL])))})


def forged_text(rng, files):
    return sealed({**files, MODEL: change_text(rng, files[MODEL])})


def forged_bytes(rng, files):
    return sealed(damaged_file(rng, {name: data for name, data in files.items() if name != MANIFEST}))


def forged_swap(rng, files):
    return sealed(swapped_files(rng, {name: data for name, data in files.items() if name != MANIFEST}))


def forged_weights(rng, files):
    """Change numbers of the weights: another model, unless they are no longer numbers."""
    data = files[WEIGHTS]
    start = 8 + struct.unpack("<Q", data[:8])[0]
    numbers = np.frombuffer(data[start:], np.uint32).copy()
    odd = [np.nan, np.inf, -np.inf, 0.0, 1e38, -1.0]
    for place in rng.integers(0, len(numbers), rng.integers(1, 9)):
        numbers[place] = np.float32(rng.choice(odd)).view(np.uint32)
    return sealed({**files, WEIGHTS: data[:start] + numbers.tobytes()})


def forged_header(rng, files):
    data = files[WEIGHTS]
    end = 8 + struct.unpack("<Q", data[:8])[0]
    header = dumps(change_json(rng, json.loads(data[8:end])))
    header += b" " * (-len(header) % 8 if rng.random() < 0.5 else 0)
    length = len(header)
    if rng.random() < 0.1:
        length = int(rng.choice([0, 1, length - 1, length + 1, 2**31, 2**63 - 1]))
    return sealed({**files, WEIGHTS: struct.pack("<Q", length) + header + data[end:]})


def packed_arrays(tree):
    """The paths to all arrays of a model file, which are texts in base64."""
    return [path for path in places(tree) if path[-1] in ("coef", "intercept", "nodes", "sets")]


def change_array(rng, name, data):
    """Change numbers of an array: those that lead from node to node are among them."""
    kind = {"nodes": NODE, "sets": np.dtype("<u4")}.get(name, np.dtype("<f4"))
    array = np.frombuffer(data, kind).copy()
    for place in rng.integers(0, max(len(array), 1), rng.integers(1, 9)) if len(array) else ():
        if array.dtype.names:
            array[str(rng.choice(array.dtype.names))][place] = rng.choice([0, 1, 2, 7, 255])
        else:
            array[place] = rng.choice([0, 1, 3, 100])
    return [array[:-1], np.append(array, array[:1]), *[array] * 6][rng.integers(8)].tobytes()


def forged_posterior(rng, files):
    """Change one array of the models of scikit-learn: its numbers, or its bytes."""
    content = json.loads(files[MODEL])
    paths = packed_arrays(content)
    if not paths:
        return files
    *path, name = paths[rng.integers(len(paths))]
    parent = at(content, path)
    data = base64.b64decode(parent[name])
    damage = BYTES[rng.integers(len(BYTES))]
    new = change_array(rng, name, data) if rng.random() < 0.8 or not data else damage(rng, data)
    parent[name] = base64.b64encode(new).decode()
    return sealed({**files, MODEL: dumps(content)})


def forged_manifest(rng, files):
    """Change the manifest, and its own digest with it."""
    content = json.loads(files[MANIFEST])
    del content["manifest"]
    if rng.random() < 0.3:
        entry = content["files"][MODEL]
        content["files"][str(rng.choice(["../model.json", "/etc/passwd", "a/b", "manifest.json", "x.pkl", ""]))] = entry
    else:
        content = change_json(rng, content)
    head = dumps(content, indent=1).removesuffix(b"\n}")
    tail = f',\n "manifest": {{\n  "size": {len(head)},\n  "sha256": "{hashlib.sha256(head).hexdigest()}"\n }}\n}}\n'
    return {**files, MANIFEST: head + tail.encode()}


ACCIDENTS: list[Mutation] = [*[damaged_file] * 4, swapped_files, missing_file]
FORGERIES: list[Mutation] = [
    *[forged_model] * 6, *[forged_posterior] * 4, *[forged_header] * 2,
    forged_weights, forged_text, forged_bytes, forged_swap, forged_manifest,
]  # fmt: skip


def damaged(rng, files):
    """Return files that are not those given, and whether their digests are right for them."""
    while True:
        forged = bool(rng.random() < 0.5)
        mutations = FORGERIES if forged else ACCIDENTS
        try:
            changed = mutations[rng.integers(len(mutations))](rng, files)
        except OverflowError:  # a number too large to be written
            continue
        if changed != files:
            return changed, forged
