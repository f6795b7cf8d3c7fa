#!/usr/bin/env python3
"""Figures of the tree's shape, as docs/ARCHITECTURE.md has them in a table.

    python3 tests/figures.py            the table
    python3 tests/figures.py --where    and the worst places of each figure

It reads Rust as rustfmt writes it: an item begins at column 0, a method at column 4. Tests are not counted.
"""

import argparse
import collections
import pathlib
import re

TREE = pathlib.Path(__file__).resolve().parent.parent
PACKAGES = ["mesh", "node", "node/store", "node/import", "node/net", "bridge", "bridge/protocol",
            "bridge/client", "cli", "testnet", "examples"]
DIALECTS = TREE / "bridge" / "dialects"

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|b?r(#*)".*?"\1|b?"(?:\\.|[^"\\])*"|b?\'(?:\\(?:x..|u\{[^}]*\}|.)|[^\'\\])\'|\'[a-z_]\w*', re.S)
WORD = re.compile(r"[A-Za-z_]\w*")
KEYWORDS = set("""as async await break const continue crate dyn else enum extern false fn for if impl in let loop match
mod move mut pub ref return self Self static struct super trait true type unsafe use where while""".split())


def is_test(path):
    parts = path.relative_to(TREE).parts
    return ("tests" in parts or "benches" in parts or path.name in ("tests.rs", "test.rs")
            or path.stem.endswith("_tests") or path.stem == "testing" or "fake" in parts or path.stem == "fake")


def without_tests(text):
    """The text up to its own tests, which stand at the end of a file."""
    cut = re.search(r"^#\[cfg\(test\)\]\n(?:#\[.*\]\n)*mod \w+ \{", text, re.M)
    return text[:cut.start()] if cut else text


class File:
    def __init__(self, package, path):
        self.package, self.path = package, path
        self.name = str(path.relative_to(TREE))
        self.text = without_tests(path.read_text())
        self.comments = [m.group(0) for m in TOKEN.finditer(self.text) if m.group(0).startswith("//")]
        blank = lambda m: "" if m.group(0).startswith(("//", "/*")) else re.sub(r"[^\n]", " ", m.group(0))
        self.code = TOKEN.sub(blank, self.text)
        root = TREE / package / "src"
        parts = path.relative_to(root).with_suffix("").parts
        self.module = tuple(p for p in parts if p not in ("lib", "main", "mod"))


def files():
    found = []
    dialects = [str(p.parent.relative_to(TREE)) for p in sorted(DIALECTS.glob("*/Cargo.toml"))]
    for package in PACKAGES + dialects:
        for path in sorted((TREE / package / "src").rglob("*.rs")):
            if not is_test(path):
                found.append(File(package, path))
    return found


def nearest(candidates, file):
    """Of several definitions of one name, the one that shares the longest path with the file."""
    def shared(other):
        return sum(1 for _ in takewhile_equal(other.path.parts, file.path.parts))
    return max(candidates, key=lambda other: (other is file, shared(other)))


def takewhile_equal(a, b):
    for x, y in zip(a, b):
        if x != y:
            return
        yield x


def methods_and_fields(all_files):
    defined = collections.defaultdict(list)
    fields = {}
    for f in all_files:
        for m in re.finditer(r"^(?:pub(?:\([\w ]+\))? )?(?:struct|enum) (\w+)", f.code, re.M):
            defined[f.package, m.group(1)].append(f)
        for m in re.finditer(r"^(?:pub(?:\([\w ]+\))? )?struct (\w+)[^;{(]*\{\n(.*?)^\}", f.code, re.M | re.S):
            fields[f"{f.name}: {m.group(1)}"] = len(re.findall(r"^    (?:pub(?:\([\w ]+\))? )?\w+:", m.group(2), re.M))
    methods = collections.defaultdict(collections.Counter)
    for f in all_files:
        for m in re.finditer(r"^impl(?:<[^{]*?>)? (\w+)(?:<[^{]*?>)? (?:where[^{]*)?\{\n(.*?)^\}", f.code, re.M | re.S):
            candidates = defined.get((f.package, m.group(1)))
            if not candidates:
                continue
            home = nearest(candidates, f)
            count = len(re.findall(r"^    (?:pub(?:\([\w ]+\))? )?(?:const )?(?:async )?fn ", m.group(2), re.M))
            methods[f"{home.name}: {m.group(1)}"][f.name] += count
    return methods, fields


SIGNATURE = re.compile(r"\bfn \w+(?:<[^(]*?>)?\(")


def signatures(code):
    for m in SIGNATURE.finditer(code):
        depth, i = 1, m.end()
        while depth and i < len(code):
            depth += {"(": 1, ")": -1}.get(code[i], 0)
            i += 1
        yield code[:m.start()].count("\n") + 1, code[m.end():i - 1]


def tuples(all_files):
    """Functions with a parameter that is a tuple, by reference or not; a type that names none is none."""
    total, found = 0, []
    for f in all_files:
        for line, parameters in signatures(f.code):
            total += 1
            if re.search(r":\s*&?(?:mut )?\((?!\s*\))", parameters):
                found.append(f"{f.name}:{line}")
    return total, found


LISTED = re.compile(r"^\s*\| (?:\w+::)*[A-Z]\w*(?:\((?:_|\.\.)(?:, (?:_|\.\.))*\)| \{ \.\. \})?(?: =>.*| if .*|\)?;?)?$")


def listed(all_files):
    found = []
    for f in all_files:
        for number, line in enumerate(f.code.split("\n"), 1):
            if LISTED.match(line):
                found.append(f"{f.name}:{number}")
    return found


def pronouns(all_files):
    by = collections.defaultdict(lambda: [0, 0])
    for f in all_files:
        words = [w for w in WORD.findall(f.code) if w not in KEYWORDS]
        by[f.name][0] += sum(1 for w in words if w == "it")
        by[f.name][1] += len(words)
    return by


def wire_lines(all_files):
    found = []
    for f in all_files:
        if f.package != "bridge":
            continue
        for number, line in enumerate(f.code.split("\n"), 1):
            if re.search(r"\bprotocol(::|\b.*;)", line):
                found.append(f"{f.name}:{number}")
    return found


def paths_of_use(code):
    """Every path that a file names, as tuples of segments."""
    for m in re.finditer(r"^\s*(?:pub(?:\([\w ]+\))? )?use ([^;]+);", code, re.M):
        yield from expand(m.group(1).replace("\n", " "), ())
    for m in re.finditer(r"(?<![:\w])([a-z_]\w*(?:::\w+)+)\b(?!::)", code):
        yield tuple(m.group(1).split("::"))


def expand(text, prefix):
    text = text.strip()
    brace = text.find("{")
    if brace < 0:
        path = text.split(" as ")[0]
        yield prefix + tuple(s.strip() for s in path.split("::") if s.strip())
        return
    prefix += tuple(s.strip() for s in text[:brace].split("::") if s.strip())
    depth, start = 0, brace + 1
    for i in range(brace, len(text)):
        if text[i] == "{":
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth == 0:
                if text[start:i].strip():
                    yield from expand(text[start:i], prefix)
        elif text[i] == "," and depth == 1:
            yield from expand(text[start:i], prefix)
            start = i + 1


def circles(all_files):
    """Strongly connected files of each package, where an edge is a path that leads into another file."""
    worst = []
    for package in sorted({f.package for f in all_files}):
        mine = {f.module: f for f in all_files if f.package == package}
        edges = {}
        for f in mine.values():
            edges[f] = set()
            for path in paths_of_use(f.code):
                base = list(f.module)
                head, rest = path[0], list(path[1:])
                if head == "crate":
                    base = []
                elif head == "super":
                    base = base[:-1]
                    while rest and rest[0] == "super":
                        base, rest = base[:-1], rest[1:]
                elif head == "self":
                    pass
                elif tuple(base + [head]) in mine:
                    rest = [head] + rest
                else:
                    continue
                target, items = tuple(base), rest
                while items and target + (items[0],) in mine:
                    target, items = target + (items[0],), items[1:]
                other = mine.get(target)
                if other and other is not f:
                    edges[f].add(other)
        worst += [(len(c), package, sorted(f.name for f in c)) for c in components(edges) if len(c) > 1]
    return sorted(worst, reverse=True)


def components(edges):
    index, low, stack, on, out, count = {}, {}, [], set(), [], [0]

    def visit(root):
        work = [(root, iter(edges[root]))]
        index[root] = low[root] = count[0]
        count[0] += 1
        stack.append(root)
        on.add(root)
        while work:
            node, rest = work[-1]
            for nxt in rest:
                if nxt not in index:
                    index[nxt] = low[nxt] = count[0]
                    count[0] += 1
                    stack.append(nxt)
                    on.add(nxt)
                    work.append((nxt, iter(edges[nxt])))
                    break
                if nxt in on:
                    low[node] = min(low[node], index[nxt])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group = []
                    while True:
                        top = stack.pop()
                        on.discard(top)
                        group.append(top)
                        if top is node:
                            break
                    out.append(group)

    for node in edges:
        if node not in index:
            visit(node)
    return out


SUBJECT = re.compile(
    r"(?:^|[.;:(,!?] |\b(?:and|or|but|that|than|because|if|for|of|to|from|by|with|when|where|as|is|are) )"
    r"(what|who|whoever|whatever)\b(?! (?:is|are|was|were)\?)", re.I)


def clauses(all_files):
    """Clauses in comments that begin with what, who, whoever or whatever; questions are left out."""
    words, found = 0, []
    for f in all_files:
        block, at = [], 0
        blocks = []
        for number, line in enumerate(f.text.split("\n"), 1):
            m = re.match(r"\s*//[/!]? ?(.*)", line)
            if m and m.group(1).strip():
                if not block:
                    at = number
                block.append(m.group(1))
            elif block:
                blocks.append((at, " ".join(block)))
                block = []
        for at, text in blocks:
            words += len(text.split())
            for sentence in re.split(r"(?<=[.?!])\s+", text):
                if not sentence.rstrip().endswith("?"):
                    found += [f"{f.name}:{at}: {sentence.strip()[:90]}"] * len(SUBJECT.findall(sentence))
    return words, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--where", action="store_true", help="the worst places, too")
    parser.add_argument("--only", default="", help="files whose path begins so")
    options = parser.parse_args()
    everything = [f for f in files() if f.name.startswith(options.only)]

    methods, fields = methods_and_fields(everything)
    largest = sorted(methods.items(), key=lambda kv: -sum(kv[1].values()))
    spread = sorted(methods.items(), key=lambda kv: -len(kv[1]))
    widest = sorted(fields.items(), key=lambda kv: -kv[1])
    functions, with_tuple = tuples(everything)
    arms = listed(everything)
    by = pronouns(everything)
    its, names = sum(v[0] for v in by.values()), sum(v[1] for v in by.values())
    wire = wire_lines(everything)
    rings = circles(everything)
    words, subjects = clauses(everything)

    name = lambda key: "`" + key.split(": ")[1] + "`"
    rows = [
        ("methods of the largest type", f"{sum(largest[0][1].values())}, {name(largest[0][0])}", "≤ 60"),
        ("files with methods of one type", f"{len(spread[0][1])}, {name(spread[0][0])}", "≤ 4"),
        ("fields of the largest struct", f"{widest[0][1]}, {name(widest[0][0])}", "≤ 25"),
        ("functions with a tuple as parameter", f"{len(with_tuple)} of {functions} ({100 * len(with_tuple) / functions:.1f} %)", "none to keep the count down"),
        ("lines that only list variants", f"{len(arms)}", "≤ 100"),
        ("identifiers `it`", f"{100 * its / names:.2f} %", "≤ 0.5 %"),
        ("lines of `bridge` outside `dialects/` that name a wire type", f"{len(wire)}", "0"),
        ("files in the largest circle of imports", f"{rings[0][0]}, `{rings[0][1]}`" if rings else "0", "≤ 3"),
        ("clauses in comments that begin with *what* or *who(ever)*, per 1,000 words", f"{1000 * len(subjects) / words:.1f}", "≤ 1"),
    ]
    print("| figure | today | aim |\n|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    if options.where:
        print("\nmethods")
        for key, counts in largest[:12]:
            print(f"  {sum(counts.values()):4} in {len(counts):2} files  {key}")
        print("fields")
        for key, count in widest[:12]:
            print(f"  {count:4}  {key}")
        print("tuples")
        for where in with_tuple:
            print(f"  {where}")
        print("lists of variants, by file")
        for key, count in collections.Counter(a.split(":")[0] for a in arms).most_common(40):
            print(f"  {count:4}  {key}")
        print("`it`, by file")
        for key, (n, _) in sorted(by.items(), key=lambda kv: -kv[1][0])[:40]:
            print(f"  {n:4}  {key}")
        print("wire types")
        for where in wire:
            print(f"  {where}")
        print("circles")
        for size, package, group in rings:
            print(f"  {size:4}  {package}: {', '.join(group)}")
        print("clauses")
        for where in subjects:
            print(f"  {where}")


if __name__ == "__main__":
    main()
