"""The man page and the completions name each command and option that the sources' tables have, and no other.

    command_docs.py SOURCE_DIR DOCS_DIR

bash's completion is run, and groff must find nothing to warn of in the man page; zsh only checks its syntax, where there is one."""

import pathlib
import re
import shutil
import subprocess
import sys


def commands_and_options(folder):
    """{command: its long options} by the tables in the sources: main.c has the commands, bench.c or bench_*.c the options of bench."""
    table = re.search(r"\} commands\[\] = \{(.*?)\n\};", (folder / "main.c").read_text(), re.DOTALL).group(1)
    found = {name: set() for name in re.findall(r'^ *\{"([a-z]+)"', table, re.MULTILINE)}
    for path in folder.glob("*.c"):
        stem = path.stem.split("_")[0]
        options = re.findall(r'\{"([a-z-]+)", (?:no|required)_argument', path.read_text())
        assert stem in found or not options, f"{path} has options of no command"
        if options:
            found[stem] |= {"--" + name for name in options}
    return found


def completed(script, *words):
    """What bash offers for the last of the words."""
    program = f'source {script}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _wsgemm; echo "${{COMPREPLY[@]}}"'
    return subprocess.run(["bash", "-c", program, "bash", *words], capture_output=True, text=True, check=True).stdout.split()


def main(source, docs):
    real = commands_and_options(source / "src/cli")
    assert len(real) >= 7 and len(real["gemm"]) >= 15, real
    page = (docs / "wsgemm.1").read_text().replace("\\-", "-")
    sections = dict(re.findall(r"^\.SH WSGEMM ([A-Z]+)\n(.*?)(?=^\.SH|\Z)", page, re.DOTALL | re.MULTILINE))
    assert {name.lower() for name in sections} == real.keys()
    zsh = (docs / "_wsgemm").read_text()
    for command, options in real.items():
        said = set(re.findall(r"--[a-z][a-z-]*", sections[command.upper()]))
        assert said | {"--help"} == options, f"man page, {command}: {said ^ options}"
        offered = re.search(rf"^  {command}\) options=\((.*?)\)", zsh, re.MULTILINE).group(1).split()
        assert sorted(offered) == sorted(options), f"zsh, {command}"
        assert re.search(rf"^  '{command}:", zsh, re.MULTILINE)
        if shutil.which("bash"):
            assert sorted(completed(docs / "wsgemm.bash", "wsgemm", command, "--")) == sorted(options), f"bash, {command}"
    if shutil.which("bash"):
        assert sorted(completed(docs / "wsgemm.bash", "wsgemm", "")) == sorted([*real, "help"])
        assert completed(docs / "wsgemm.bash", "wsgemm", "gemm", "--tr") == ["--transa", "--transb"]
        assert completed(docs / "wsgemm.bash", "wsgemm", "gemm", "") == []  # files are bash's own affair
        assert completed(docs / "wsgemm.bash", "wsgemm", "tune", "") == ["show", "export", "import", "clear"]
        assert sorted(completed(docs / "wsgemm.bash", "wsgemm", "help", "")) == sorted(real)
    if shutil.which("zsh"):
        subprocess.run(["zsh", "-n", docs / "_wsgemm"], check=True)
    if shutil.which("groff"):
        done = subprocess.run(["groff", "-man", "-ww", "-Tascii", docs / "wsgemm.1"], capture_output=True, text=True, check=True)
        assert done.stderr == "", done.stderr
        assert "'wsgemm help COMMAND' describes one" in done.stdout
    print(f"{len(real)} commands, {sum(map(len, real.values()))} options")


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
