"""The examples of README.md compile and run as they are printed there.

    readme_examples.py c|python|gpu SOURCE_DIR BUILD_DIR SCRATCH_DIR C_COMPILER

c       the C example by the README's own compile line, then by each of its CMake fragments, against an installed tree
python  the Python examples for host memory, and the commands `wsgemm ...`, on matrices that NumPy wrote
gpu     the Python examples for CUDA arrays; where there is no torch with a GPU: 77, for "cannot run here"

SCRATCH_DIR is emptied first.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys


def fail(*words):
    sys.exit("readme_examples.py: " + " ".join(str(word) for word in words))


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        shown = command if isinstance(command, str) else shlex.join(map(str, command))
        fail(f"{shown}: exit code {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


class Examples:
    def __init__(self, source, build, scratch, compiler):
        self.source, self.build, self.compiler = source, build, compiler
        self.scratch, self.installed = scratch, scratch / "installed"
        self.blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (source / "README.md").read_text(), re.DOTALL | re.MULTILINE)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        run(["cmake", "--install", build, "--prefix", self.installed])
        self.library = next(self.installed.glob("lib*/**/libwsgemm.so"), None)
        # A user's shell may set these; they would lead to some other wsgemm.
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in ("CMAKE_PREFIX_PATH", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "PYTHONPATH")}
        self.environment |= {"PKG_CONFIG_PATH": str(next(self.installed.glob("**/wsgemm.pc")).parent),
                             "WSGEMM_TUNE": str(scratch / "tuning")}

    def of(self, language, at_least=1):
        found = [text for name, text in self.blocks if name == language]
        if len(found) < at_least:
            fail(f"README.md has {len(found)} examples in {language}, not {at_least}")
        return found

    def shell_lines(self, beginning):
        """Commands that begin so, without their remarks."""
        lines = [line for text in self.of("sh") for line in text.splitlines() if line.startswith(beginning)]
        if not lines:
            fail(f"README.md has no command that begins with '{beginning}'")
        return [re.sub(r"\s+#.*", "", line) for line in lines]

    def check_c_output(self, program):
        expected = re.search(r"printf\(.*?/\* (.*?) \*/", self.of("c")[0])
        if not expected:
            fail("the C example does not say what it prints")
        printed = run([program], env=self.environment).strip()
        if printed != expected[1]:
            fail(f"{program} prints '{printed}', the README says '{expected[1]}'")

    def c(self):
        (program,) = self.of("c")
        (line,) = self.shell_lines("cc ")
        (self.scratch / "example.c").write_text(program)
        run(shlex.quote(self.compiler) + " -std=c11 -Wall -Wextra -Wpedantic -Werror" + line.removeprefix("cc"), shell=True,
            cwd=self.scratch, env=self.environment)
        self.check_c_output(self.scratch / "example")
        for number, fragment in enumerate(self.of("cmake", 2)):
            project = self.scratch / f"cmake_{number}"
            project.mkdir()
            (project / "example.c").write_text(program)
            (project / "wsgemm").symlink_to(self.source)
            (project / "CMakeLists.txt").write_text(
                "cmake_minimum_required(VERSION 3.25)\nproject(example C)\nadd_executable(example example.c)\n" + fragment)
            run(["cmake", "-S", project, "-B", project / "build", "-G", "Ninja", f"-DCMAKE_C_COMPILER={self.compiler}",
                 f"-DCMAKE_PREFIX_PATH={self.installed}", "-DCMAKE_BUILD_TYPE=Debug", "-DWSGEMM_CUDA=OFF"], env=self.environment)
            run(["cmake", "--build", project / "build", "-j", "1"], env=self.environment)
            self.check_c_output(project / "build" / "example")
        print(f"the C example, by pkg-config and {number + 1} fragments of CMake: ok")

    def python_environment(self):
        return {**self.environment, "PYTHONPATH": str(self.source / "python"), "WSGEMM_LIBRARY": str(self.library)}

    def find_python(self, *modules):
        for python in (os.environ.get("WSGEMM_TEST_PYTHON"), self.source / ".venv" / "bin" / "python", sys.executable):
            if python and shutil.which(python) and subprocess.run([python, "-c", f"import {', '.join(modules)}"], capture_output=True).returncode == 0:
                return str(python)
        skip(f"no Python with {' and '.join(modules)}")

    def python(self):
        if not self.library:
            skip("the library is static")
        python = self.find_python("numpy")
        for text in (text for text in self.of("python") if "cuda" not in text):
            run([python, "-W", "error", "-c", text], env=self.python_environment(), cwd=self.scratch)
        run([python, "-c", "import numpy as n; [n.save(x, n.random.rand(90, 90)) for x in 'AB']"], cwd=self.scratch)
        commands = self.shell_lines("wsgemm ")
        path = {**self.environment, "PATH": f"{self.installed / 'bin'}:{os.environ['PATH']}"}
        for command in commands:
            run(command, shell=True, cwd=self.scratch, env=path)
        if not (self.scratch / "C.npy").exists():
            fail("no command wrote C.npy")
        print(f"Python, and {len(commands)} commands: ok")

    def gpu(self):
        if not self.library:
            skip("the library is static")
        python = self.find_python("numpy", "torch")
        if run([python, "-c", "import torch; print(torch.cuda.is_available())"]).strip() != "True":
            skip("torch finds no GPU")
        for text in (text for text in self.of("python", 2) if "cuda" in text):
            run([python, "-c", text], env=self.python_environment(), cwd=self.scratch)
        print("Python on a GPU: ok")


def main():
    part, source, build, scratch, compiler = sys.argv[1:]
    examples = Examples(*(pathlib.Path(path).resolve() for path in (source, build, scratch)), compiler)
    {"c": examples.c, "python": examples.python, "gpu": examples.gpu}[part]()


if __name__ == "__main__":
    main()
