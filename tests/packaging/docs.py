"""README.md, docs/, tests/README.md and the header say nothing of what is not there, and use the field's words.

    docs.py SOURCE_DIR

Looks at every path and link, every name of a call, a test, an environment variable and a CMake option; and that
docs/environment.md leaves none of the last two out. Examples are run by readme_examples.py.
"""

import json
import math
import pathlib
import re
import sys

# Words that would have to be explained, and what the field says.
WORDS = {
    r"copy engine": "TMA",
    r"matrix units?": "tensor core (of AMX: AMX)",
    r"multiprocessors?": "SM",
    r"\brings?\b": "pipeline",
    r"\bmarked\b": "fallback, or: rows that need 3 slices",
    r"\bunfit\b": "fallback",
    r"\bswapp?(?:ed|ing)?\b": "transposed",
    r"\bpieces?\b": "chunk of C",
    r"\bdice\b|\barms?\b": "rng, candidate",
    r"\bsweeps?\b": "macro-kernel",
    r"\bpitch\b": "align copy",
    r"\b(?:cut|cuts) into (?:\w+ )?slices": "split into slices",
    r"as they stand\b": "as they are",
    r"\brooms\b": "folders, layers",
    r"\bso-manieth\b|\bworked off\b": "every n-th; processed",
}
MOST_README_LINES = 160
HEADINGS = ["Quick start", "Performance", "Numerical guarantees", "Scheduling", "Tuning", "Limits"]
TOP_FOLDERS = r"(?:src|cuda|include|tests|bench|python|tools|docs)"


class Repository:
    def __init__(self, root):
        self.root = root
        self.header = self.read("include/wsgemm.h")
        self.documents = {path: self.read(path) for path in
                          ["README.md", "tests/README.md", *sorted(p.relative_to(root).as_posix() for p in (root / "docs").glob("*.md"))]}

    def read(self, path):
        return (self.root / path).read_text()

    def texts(self, folder, *endings):
        return [p.read_text(errors="replace") for p in sorted((self.root / folder).rglob("*")) if p.suffix in endings]


def anchors(text):
    """The anchors that GitHub makes of the headings."""
    heads = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def code_spans(text):
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def bad_paths(repository):
    n_paths = 0
    for document, text in repository.documents.items():
        for span in code_spans(text):
            if not re.fullmatch(TOP_FOLDERS + r"/[\w./*-]*", span) or "NAME" in span:
                continue
            n_paths += 1
            found = any(repository.root.glob(span)) if "*" in span else (repository.root / span).exists()
            if not found:
                yield f"{document} names {span}, which does not exist"
    if n_paths < 50:
        yield f"only {n_paths} paths are named in all documents"


def bad_counts(repository):
    """docs/design.md: "**Host memory**, 19 files: ..", then a list that names them."""
    text = repository.documents.get("docs/design.md", "")
    lists = re.findall(r"^\*\*(.*?)\*\*, (\d+) files:.*?\n\n((?:\d+\. .*\n)+)", text, re.MULTILINE)
    if len(lists) < 2:
        yield "docs/design.md does not count the files on the path of a host call and of a device call"
    for name, count, steps in lists:
        n_files = len({span for span in code_spans(steps) if re.fullmatch(TOP_FOLDERS + r"/[\w./-]*\.\w+", span)})
        if n_files != int(count):
            yield f"docs/design.md: the path for {name.lower()} names {n_files} files, not {count}"


def bad_links(repository):
    n_links = 0
    for document, text in repository.documents.items():
        place = (repository.root / document).parent
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if re.match(r"\w+:", target):
                continue
            n_links += 1
            path, _, anchor = target.partition("#")
            file = (place / path) if path else repository.root / document
            if not file.exists():
                yield f"{document} links to {target}, which does not exist"
            elif anchor and anchor not in anchors(file.read_text()):
                yield f"{document} links to {target}, a heading that does not exist"
    if n_links < 10:
        yield f"only {n_links} links in all documents"


def bad_names(repository):
    """Calls of the header, of the Python package, and tests."""
    package = repository.read("python/wsgemm/__init__.py")
    public = set(re.findall(r'^    "(\w+)",$', package, re.MULTILINE))
    public |= {path.parent.name for path in (repository.root / "python/wsgemm").glob("*/__init__.py")}
    cmake = repository.read("CMakeLists.txt") + repository.read("tests/CMakeLists.txt")
    for document, text in repository.documents.items():
        for span in code_spans(text):
            for name in re.findall(r"\bwsgemm_[a-z0-9_]+\b", span):
                if name not in repository.header and name not in cmake:
                    yield f"{document} names {name}, which neither the header nor CMakeLists.txt has"
            for name in re.findall(r"\bwsgemm\.(\w+)", span):
                if name not in public | {"h", "pc"} and not span.startswith("wsgemm-"):
                    yield f"{document} names wsgemm.{name}, which the Python package does not export"
            test = re.fullmatch(r"(\w+)\.(\w+)", span)
            files = list((repository.root / "tests").glob(f"*/test_{test[1]}.c*")) if test else []
            if files and f'"{test[2]}"' not in files[0].read_text():
                yield f"{document} names the test {span}, which does not exist"


def bad_environment(repository):
    """docs/environment.md has just the variables that something reads, and the options that CMake takes."""
    sources = repository.texts("src", ".c", ".h") + repository.texts("tests", ".c", ".h", ".cu", ".sh", ".py", ".txt") + \
        repository.texts("python", ".py") + repository.texts("tools", ".sh", ".py") + repository.texts("bench", ".c", ".cu", ".h")
    variables = {name for source in sources for name in re.findall(r'\{"(WSGEMM_[A-Z_]+)", (?:read_|NULL, NULL, WS_SETTING_)', source)}
    if len(variables) < 9:
        yield f"found only {len(variables)} variables in the library's table of them"
    for source in sources:
        variables |= set(re.findall(r'getenv\("(WSGEMM_[A-Z_]+)"\)', source))
        variables |= set(re.findall(r'environ(?:\.get\(|\[)"(WSGEMM_[A-Z_]+)"', source))
        variables |= set(re.findall(r"\$\{(WSGEMM_[A-Z_]+):-", source))
    # A variable of the shell with an option's name is documented once, as the option.
    lists = "\n".join([repository.read("CMakeLists.txt"), *repository.texts("tools", ".cmake")])
    options = set(re.findall(r"^ *option\((WSGEMM_[A-Z_]+)", lists, re.MULTILINE))
    options |= set(re.findall(r"^ *set\((WSGEMM_[A-Z_]+)[^\n]* CACHE ", lists, re.MULTILINE))
    options |= set(re.findall(r"^ *find_program\((WSGEMM_[A-Z_]+)", lists, re.MULTILINE))
    text = repository.documents.get("docs/environment.md", "")
    named = set(re.findall(r"^\| `(WSGEMM_[A-Z_]+)`", text, re.MULTILINE))
    for name in sorted((variables | options) - named):
        yield f"docs/environment.md lacks {name}"
    for name in sorted(named - variables - options):
        yield f"docs/environment.md has {name}, which nothing reads"


def bad_words(repository):
    texts = {**repository.documents, "include/wsgemm.h": repository.header}
    for document, text in texts.items():
        if document == "docs/glossary.md":  # says which words are not used
            continue
        for number, line in enumerate(text.splitlines(), 1):
            for word, better in WORDS.items():
                found = re.search(word, line, re.IGNORECASE)
                if found:
                    yield f"{document}:{number}: \"{found[0]}\"; say: {better}"


def bad_readme(repository):
    text = repository.documents["README.md"]
    n_lines = len(text.splitlines())
    if n_lines > MOST_README_LINES:
        yield f"README.md has {n_lines} lines; details belong into docs/"
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    yield from (f"README.md has no heading \"{head}\"" for head in HEADINGS if head not in heads)


# Figures in prose: document, suite, routines (letters; "": all), and the text, made of the geometric mean and the least.
FIGURES = [
    ("README.md", "gpu_heat", "", "{:.2f} (least {:.2f})"),
    ("README.md", "gpu_half_heat", "", "{:.2f} ({:.2f})"),
    ("README.md", "gpu_half_odd", "", "have {:.1f}"),
    ("README.md", "gpu_tf32_random_uniform", "s", "In TF32 `float` has {:.2f} ({:.2f})"),
    ("README.md", "gpu_pedantic_random_uniform", "s", "by multiply-adds alone {:.2f} ({:.2f})"),
    ("README.md", "gpu_tf32_random", "s", "these are {:.2f} ({:.2f})"),
    ("README.md", "gpu_pedantic_random", "s", "and {:.2f} ({:.2f}), and `float`"),
    ("README.md", "gpu_random", "s", "`float` {:.2f} ({:.2f})"),
    ("README.md", "gpu_random", "d", "`double` {:.2f} ({:.2f})"),
    ("README.md", "gpu_random", "c", "complex `float` {:.2f} ({:.2f})"),
    ("README.md", "gpu_random", "z", "complex `double` {:.2f} ({:.2f})"),
    ("README.md", "gpu_half_random", "h", "FP16 {:.2f} ({:.2f})"),
    ("README.md", "gpu_half_random", "b", "BF16 {:.2f} ({:.2f})"),
    ("docs/numerics.md", "gpu_invariant", "s", "{:.2f} of the default's speed for sgemm"),
    ("docs/numerics.md", "gpu_invariant", "c", "{:.2f} for cgemm"),
    ("docs/numerics.md", "gpu_invariant", "d", "{:.2f} for dgemm"),
    ("docs/numerics.md", "gpu_invariant", "z", "{:.2f} for zgemm"),
    ("docs/numerics.md", "gpu_half_invariant", "h", "{:.2f} for hgemm"),
    ("docs/numerics.md", "gpu_half_invariant", "b", "{:.2f} for bgemm"),
    ("docs/numerics.md", "gpu_pedantic", "s", "runs sgemm at {:.2f} of cuBLAS's speed"),
    ("docs/numerics.md", "gpu_square", "s", "by default sgemm has {:.2f}"),
    ("docs/numerics.md", "gpu_half_pedantic", "h", "hgemm and bgemm at {:.2f} of cuBLAS's speed"),
    ("docs/numerics.md", "gpu_half_pedantic", "b", "hgemm and bgemm at {:.2f} of cuBLAS's speed"),
    ("docs/numerics.md", "gpu_tf32", "s", "runs sgemm at {:.2f} of the speed of cuBLAS's TF32"),
]


def bad_figures(repository):
    for document, suite, routines, form in FIGURES:
        lines = map(json.loads, repository.read(f"bench/results/nvidia-h200/{suite}.jsonl").splitlines())
        ratios = [line["ratio"] for line in lines if not routines or line["routine"][0] in routines]
        figures = form.format(math.exp(sum(map(math.log, ratios)) / len(ratios)), min(ratios))
        if figures not in " ".join(repository.documents[document].split()):
            yield f"{document} does not say \"{figures}\" of suite {suite}"


def bad_comments(repository):
    """Comments of the header end at column 100."""
    in_comment = False
    for number, line in enumerate(repository.header.splitlines(), 1):
        in_comment |= "/*" in line
        if in_comment and len(line) > 100:
            yield f"include/wsgemm.h:{number}: a comment of {len(line)} columns"
        if "*/" in line:
            in_comment = False


def main():
    repository = Repository(pathlib.Path(sys.argv[1]).resolve())
    checks = [bad_paths, bad_counts, bad_links, bad_names, bad_environment, bad_words, bad_readme, bad_figures, bad_comments]
    faults = [fault for check in checks for fault in check(repository)]
    for fault in faults:
        print(fault, file=sys.stderr)
    if not faults:
        print(f"{len(repository.documents)} documents, all as they should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
