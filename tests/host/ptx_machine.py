"""Executes PTX of small kernels that take their work by Cluster Launch Control, on a simulated device: every instruction does what the PTX
manual says of it, with the operands that it has. In place of the manual's undefined behaviour stands an error.

One thread goes on at a time, for a few instructions, in an order drawn at random; launches, requests and their answers take their time.
Fences do nothing here: what may be reordered is for clc_machine.h. Only the instructions that such kernels have are known.
"""

import random
import re

U32, U64 = (1 << 32) - 1, (1 << 64) - 1
MOST_STEPS = 20000  # of a run: many times what the largest takes
RESULT_BYTES = 16
SHARED_FIRST = 0x400  # no shared variable stands at 0


class Wrong(Exception):
    """What the manual calls undefined, or a wrong count of visits."""


class Instruction:
    def __init__(self, line):
        guard = re.match(r"@(!?)([%\w$]+)\s+(.*)", line)
        self.guard, self.is_negated = (guard.group(2), bool(guard.group(1))) if guard else (None, False)
        text = guard.group(3) if guard else line
        name, _, operands = text.partition(" ") if "\t" not in text else text.partition("\t")
        self.name, self.text = name.strip(), line
        self.operands = [o.strip() for o in re.findall(r"(?:\{[^}]*\}|\[[^\]]*\]|[^,{}\[\]])+", operands) if o.strip()]


class Kernel:
    def __init__(self, text):
        self.name = re.match(r"\w+", text).group()
        self.params = re.findall(r"\.param\s+[^,()\n]*?(\w+)(?:\[\d+\])?\s*[,\n)]", text[: text.index("{")])
        self.shared, at = {}, SHARED_FIRST
        for align, scalar, name, n_bytes in re.findall(r"\.shared \.align (\d+) \.(\w+) ([\w$]+)(?:\[(\d+)\])?;", text):
            at = -(-at // int(align)) * int(align)
            self.shared[name] = at
            at += int(n_bytes) if n_bytes else int(scalar[1:]) // 8
        self.instructions, self.labels = [], {}
        for line in (line.strip() for line in text[text.index("{") + 1:].splitlines()):
            label = re.match(r"([$\w]+):$", line)
            if label:
                self.labels[label.group(1)] = len(self.instructions)
            elif line and line not in "{}" and not line.startswith(("//", ".")):
                self.instructions.append(Instruction(line.rstrip(";")))


def parse_kernels(ptx):
    kernels = [Kernel(part) for part in re.split(r"^\.visible \.entry ", ptx, flags=re.MULTILINE)[1:]]
    return {kernel.name: kernel for kernel in kernels}


class Barrier:
    def __init__(self, n_arrivals):
        self.n_arrivals = self.pending = n_arrivals
        self.n_bytes = self.n_phases = 0

    def complete_if_due(self):
        if self.pending == 0 and self.n_bytes == 0:
            self.n_phases += 1
            self.pending = self.n_arrivals


class Block:
    def __init__(self, cluster, rank, n_threads):
        self.cluster, self.rank, self.memory, self.barriers = cluster, rank, {}, {}
        self.in_flight = None  # the address that a request will write
        self.threads = [Thread(self, i) for i in range(n_threads)]

    ctaid = property(lambda self: self.cluster.first_ctaid + self.rank)


class Thread:
    def __init__(self, block, index):
        self.block, self.index, self.pc, self.registers, self.is_done, self.waits_in = block, index, 0, {}, False, None


class Cluster:
    def __init__(self, first_ctaid, n_blocks, n_threads):
        self.first_ctaid, self.request, self.is_refusal_seen = first_ctaid, None, False
        self.blocks = [Block(self, rank, n_threads) for rank in range(n_blocks)]
        self.started = set()


class Device:
    def __init__(self, kernel, seed, n_items, cluster_blocks, n_threads, n_resident, priority):
        self.kernel, self.random, self.n_items = kernel, random.Random(seed), n_items
        self.cluster_blocks, self.n_threads, self.n_resident, self.priority = cluster_blocks, n_threads, n_resident, priority
        self.n_clusters, self.next_cluster = -(-n_items // cluster_blocks), 0
        self.clusters, self.visits, self.answers = [], {}, {}
        self.events = [self.random.choice([0.02, 0.2, 0.9]) for _ in range(3)]  # how soon: a launch, an answer, its bytes

    # ---- The device

    def run(self):
        for _ in range(MOST_STEPS):
            self.perform_events()
            ready = [t for c in self.clusters for b in c.started for t in b.threads if not t.is_done and t.waits_in is None]
            if ready:
                thread = self.random.choice(ready)
                for _ in range(self.random.choice([1, 5, 40])):
                    if thread.is_done or thread.waits_in is not None:
                        break
                    self.step(thread)
            self.clusters = [c for c in self.clusters if not self.has_left(c)]
            if not self.clusters and self.next_cluster == self.n_clusters:
                return self.check_visits()
        raise Wrong("it goes on for ever")

    def perform_events(self):
        launch, answer, write = self.events
        if self.next_cluster < self.n_clusters and len(self.clusters) < self.n_resident and self.random.random() < launch:
            self.clusters.append(Cluster(self.next_cluster * self.cluster_blocks, self.cluster_blocks, self.n_threads))
            self.next_cluster += 1
        for c in self.clusters:
            for block in c.blocks:
                if block not in c.started and self.random.random() < 0.3:
                    c.started.add(block)
            if c.request is None:
                continue
            if "answer" not in c.request:
                if self.random.random() < answer:
                    c.request["answer"] = self.decide()
                continue
            for block in list(c.request["to"]):
                if self.random.random() < write:
                    self.deliver(c.request, block)
            if not c.request["to"]:
                c.request = None

    def decide(self):
        """The 128 bits of an answer: those of no two are the same, and none is right the other way round."""
        first = None
        if self.next_cluster < self.n_clusters and self.random.random() >= self.priority:
            first, self.next_cluster = self.next_cluster * self.cluster_blocks, self.next_cluster + 1
        bits = self.random.getrandbits(128)
        self.answers[bits] = first
        return bits

    def deliver(self, request, block):
        request["to"].remove(block)
        for i in range(2):
            block.memory[request["result"] + 8 * i, 8] = request["answer"] >> 64 * i & U64
        block.in_flight = None
        barrier = block.barriers[request["barrier"]]
        barrier.n_bytes -= RESULT_BYTES
        barrier.complete_if_due()

    def has_left(self, c):
        if len(c.started) < len(c.blocks) or not all(t.is_done for b in c.blocks for t in b.threads):
            return False
        if c.request is not None:
            raise Wrong("a cluster leaves with a request under way")
        return True

    def meet(self, threads, place):
        present = [t for t in threads if not t.is_done]
        if all(t.waits_in == place for t in present):
            for t in present:
                t.waits_in = None

    def check_visits(self):
        for item in set(range(self.n_items)) | set(self.visits):
            n = self.visits.get(item, 0)
            if n != (self.n_threads if item < self.n_items else 0):
                raise Wrong(f"item {item} of {self.n_items}: {n} visits by blocks of {self.n_threads} threads")

    # ---- Operands

    def read(self, thread, operand):
        if re.fullmatch(r"-?\d+", operand):
            return int(operand)
        special = {"%tid.x": thread.index, "%ctaid.x": thread.block.ctaid, "%cluster_ctaid.x": thread.block.rank}
        if operand in special:
            return special[operand]
        if operand in self.kernel.shared:
            return self.kernel.shared[operand]
        if operand in self.kernel.params:
            return ("param", self.kernel.params.index(operand))
        if operand.startswith("{"):
            return sum(self.read(thread, part.strip()) << 64 * i for i, part in enumerate(operand[1:-1].split(",")))
        if operand not in thread.registers:
            raise Wrong(f"{operand} is read before it is written")
        return thread.registers[operand]

    def address(self, thread, operand):
        base, _, offset = operand.strip("[]").partition("+")
        at = self.read(thread, base.strip())
        return (at[0], at[1], int(offset or 0)) if isinstance(at, tuple) else at + int(offset or 0)

    def barrier_at(self, block, at):
        if at not in block.barriers:
            raise Wrong(f"no barrier was initialised at {at}")
        return block.barriers[at]

    # ---- Instructions

    def step(self, thread):
        instruction = self.kernel.instructions[thread.pc]
        thread.pc += 1
        if instruction.guard and bool(self.read(thread, instruction.guard)) == instruction.is_negated:
            return
        name, operands = instruction.name, instruction.operands
        for pattern, execute in INSTRUCTIONS:
            if re.match(pattern, name):
                return execute(self, thread, name, operands)
        raise Wrong(f"ptx_machine.py does not know: {instruction.text}")

    def move(self, t, name, o):
        t.registers[o[0]] = self.read(t, o[1])

    def convert(self, t, name, o):
        t.registers[o[0]] = self.read(t, o[1]) & (U32 if ".u32." in name else U64)

    def compute(self, t, name, o):
        x, y = self.read(t, o[1]), self.read(t, o[2]) if len(o) > 2 else 0
        mask = U64 if "64" in name else 1 if name.endswith("pred") else U32
        value = {"add": lambda: x + y, "sub": lambda: x - y, "and": lambda: x & y, "or": lambda: x | y, "xor": lambda: x ^ y,
                 "shl": lambda: x << y, "shr": lambda: x >> y, "not": lambda: ~x, "min": lambda: min(x, y)}[name.split(".")[0]]()
        t.registers[o[0]] = value & mask

    def compare(self, t, name, o):
        kind, of_type = name.split(".")[1:3]
        bits = int(of_type[1:])
        x, y = (self.read(t, operand) & ((1 << bits) - 1) for operand in o[1:3])
        if of_type[0] == "s":
            x, y = (v - (1 << bits) if v >> (bits - 1) else v for v in (x, y))
        t.registers[o[0]] = {"eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y}[kind]

    def select(self, t, name, o):
        t.registers[o[0]] = self.read(t, o[1] if self.read(t, o[3]) else o[2])

    def branch(self, t, name, o):
        t.pc = self.kernel.labels[o[0]]

    def leave(self, t, name, o):
        t.is_done = True
        self.meet(t.block.threads, "block")
        self.meet([u for b in t.block.cluster.blocks for u in b.threads], "cluster")

    def load_param(self, t, name, o):
        _, param, offset = self.address(t, o[1])
        t.registers[o[0]] = self.n_items if param == 0 and offset == 0 else 0  # the other one: n_visits, from address 0 on

    def load_shared(self, t, name, o):
        at, n_bytes = self.address(t, o[1]), int(name[-2:]) // 8
        flight = t.block.in_flight
        for i, register in enumerate(o[0].strip("{}").split(",")):
            if flight is not None and flight <= at + i * n_bytes < flight + RESULT_BYTES:
                raise Wrong("a result is read before its completion")
            if (at + i * n_bytes, n_bytes) not in t.block.memory:
                raise Wrong(f"shared memory at {at + i * n_bytes} is read before it is written")
            t.registers[register.strip()] = t.block.memory[at + i * n_bytes, n_bytes]

    def store_shared(self, t, name, o):
        t.block.memory[self.address(t, o[0]), int(name[-2:]) // 8] = self.read(t, o[1])

    def visit(self, t, name, o):
        operands = o if name.startswith("red") else o[1:]
        item = self.address(t, operands[0]) // 4
        self.visits[item] = self.visits.get(item, 0) + self.read(t, operands[1])

    def sync_block(self, t, name, o):
        t.waits_in = "block"
        self.meet(t.block.threads, "block")

    def wait_in_cluster(self, t, name, o):
        t.waits_in = "cluster"
        self.meet([u for b in t.block.cluster.blocks for u in b.threads], "cluster")

    def init_barrier(self, t, name, o):
        at = self.address(t, o[0])
        if at in t.block.barriers:
            raise Wrong("a barrier is initialised twice")
        n_arrivals = self.read(t, o[1])
        if n_arrivals < 1:
            raise Wrong("a barrier of no arrivals")
        t.block.barriers[at] = Barrier(n_arrivals)

    def expect_bytes(self, t, name, o):
        barrier = self.barrier_at(t.block, self.address(t, o[1]))
        if barrier.pending == 0:
            raise Wrong("more arrivals than a barrier expects")
        barrier.pending -= 1
        barrier.n_bytes += self.read(t, o[2])
        barrier.complete_if_due()

    def try_wait(self, t, name, o):
        barrier, parity = self.barrier_at(t.block, self.address(t, o[1])), self.read(t, o[2])
        if parity not in (0, 1):
            raise Wrong(f"{parity} is no parity")
        t.registers[o[0]] = barrier.n_phases & 1 != parity

    def elect(self, t, name, o):
        if not self.read(t, o[1]) >> t.index & 1:
            raise Wrong("a thread is not among those that it elects from")
        t.registers[o[0].split("|")[1]] = True

    def active_mask(self, t, name, o):
        t.registers[o[0]] = 1 << t.index

    def try_cancel(self, t, name, o):
        c, result, barrier = t.block.cluster, self.address(t, o[0]), self.address(t, o[1])
        if c.is_refusal_seen:
            raise Wrong("a request after an observed refusal")
        if c.request is not None:
            raise Wrong("a second request before the first has completed")
        if len(c.started) < self.cluster_blocks:
            raise Wrong("a request before all blocks of the cluster run")
        if result % RESULT_BYTES:
            raise Wrong("a result is not aligned")
        to = list(c.blocks) if ".multicast::cluster::all" in name else [t.block]
        for block in to:
            self.barrier_at(block, barrier)
            if any(result < at + 8 and at < result + RESULT_BYTES for at in block.barriers):
                raise Wrong("a result is written over a barrier")
            block.in_flight = result
        c.request = {"to": to, "result": result, "barrier": barrier}

    def answer_of(self, bits):
        if bits not in self.answers:
            raise Wrong("this is no answer to a request")
        return self.answers[bits]

    def is_canceled(self, t, name, o):
        is_granted = self.answer_of(self.read(t, o[1])) is not None
        t.block.cluster.is_refusal_seen |= not is_granted
        t.registers[o[0]] = is_granted

    def first_ctaid(self, t, name, o):
        first = self.answer_of(self.read(t, o[1]))
        if first is None:
            raise Wrong("a refusal is decoded")
        t.registers[o[0]] = first if "::x" in name else 0

    def do_nothing(self, t, name, o):
        pass


INSTRUCTIONS = [
    (r"ld\.param\.", Device.load_param), (r"ld\.shared\.", Device.load_shared), (r"st\.shared\.", Device.store_shared),
    (r"(atom|red)\.global\.add\.u32$", Device.visit), (r"cvt\.u(32|64)\.u(16|32|64)$", Device.convert),
    (r"(mov|cvta\.to\.global)\.", Device.move), (r"(add|sub|and|or|xor|shl|shr|not|min)\.", Device.compute),
    (r"setp\.(eq|ne|lt|le|gt|ge)\.[us](16|32|64)$", Device.compare), (r"selp\.", Device.select), (r"bra(\.uni)?$", Device.branch),
    (r"ret$", Device.leave), (r"bar\.sync$", Device.sync_block), (r"barrier\.cluster\.arrive", Device.do_nothing),
    (r"barrier\.cluster\.wait", Device.wait_in_cluster), (r"activemask\.b32$", Device.active_mask), (r"elect\.sync$", Device.elect),
    (r"mbarrier\.init\.", Device.init_barrier), (r"mbarrier\.arrive\.expect_tx\.", Device.expect_bytes),
    (r"mbarrier\.try_wait\.parity\.", Device.try_wait), (r"clusterlaunchcontrol\.try_cancel\.", Device.try_cancel),
    (r"clusterlaunchcontrol\.query_cancel\.is_canceled\.", Device.is_canceled),
    (r"clusterlaunchcontrol\.query_cancel\.get_first_ctaid", Device.first_ctaid), (r"fence\.", Device.do_nothing),
]


def first_fault(kernel, cluster_blocks, n_runs):
    """What is wrong with a kernel that is to visit each item once with each thread of a block, in so many runs; None: nothing."""
    shapes = random.Random(n_runs)
    for seed in range(n_runs):
        try:
            Device(kernel, seed, shapes.choice([1, 2, 3, 7, 12]), cluster_blocks, shapes.choice([1, 2, 3]), shapes.choice([1, 2, 3]),
                   shapes.choice([0, 0.3])).run()
        except Wrong as wrong:
            return str(wrong)
    return None
