"""The parts of the file that are the same for every capture: they place, compile and launch."""

from __future__ import annotations

PLACE = """
# Where each function stood, (file, line of the def, module, indent): its locations in the IR, and so the debug
# information of the binary, are made of that.
PLACES = {places}


def place_functions():
    for function in [one for one in gc.get_objects() if issubclass(type(one), triton.runtime.JITFunction)]:
        code = function.fn.__code__
        if code.co_filename != __file__ or function.fn.__qualname__ not in PLACES:
            continue
        file, line, module, indent = PLACES[function.fn.__qualname__]
        before = next(at for at, text in enumerate(function.raw_src) if text.lstrip().startswith("def "))
        function.fn.__code__ = code.replace(co_filename=file, co_firstlineno=line)
        function.starting_line_number = line - before
        if hasattr(function, "def_file_line_number"):
            function.file_name, function.def_file_line_number = file, line
            function.def_file_col_number += indent
        function.fn.__module__ = function.__module__ = function.module = module
        function._fn_name = f"{{module}}.{{function.fn.__qualname__}}"
"""

COMPILE_PYTHON = """

def the_kernel():
    function = {name}
    while not isinstance(function, triton.runtime.JITFunction):
        function = function.fn if hasattr(function, "fn") else {jit}(function)
    return function


def compile_kernel():
    place_functions()
    kernel = the_kernel()

    def path(key):
        name, *rest = key if isinstance(key, tuple) else (key,)
        return (kernel.arg_names.index(name), *rest)

    constants = {{path(key): value for key, value in CONSTANTS.items()}}
    attributes = {{path(key): value for key, value in ATTRIBUTES.items()}}
    source = {source}(fn=kernel, signature=SIGNATURE, constexprs=constants, attrs=attributes)
    return triton.compile(source, target=TARGET, options=OPTIONS)
"""

COMPILE_IR = """

def compile_kernel():
    backend = make_backend(TARGET)
    context = libtriton.ir.context()
    libtriton.ir.load_dialects(context)
    backend.load_dialects(context)
    folder = os.environ["TRITON_CACHE_DIR"]
    path = os.path.join(folder, {name} + "." + {stage})
    with open(path, "w", encoding="utf-8") as file:
        file.write(IR)
    options = backend.parse_options(OPTIONS)
    stages = {{}}
    backend.add_stages(stages, options, Language.{language})
    backend.get_codegen_implementation(options)
    module = IR
    if {stage} in ("source", "ttir", "ttgir", "glir"):
        module = libtriton.ir.parse_mlir_module(path, context)
        module.context = context
    else:
        libtriton.llvm.init_targets()
    metadata = {{"hash": "", "target": TARGET, **vars(options), "triton_version": triton.__version__}}
    first = 0 if {stage} == "source" else list(stages).index({stage}) + 1
    for stage, make in list(stages.items())[first:]:
        module = make(module, metadata)
        data = module if isinstance(module, bytes) else str(module).encode()
        with open(os.path.join(folder, {name} + "." + stage), "wb") as file:
            file.write(data)
"""

PLAN = """
# The passes that are off: (stage, name, how many of that name ran in the stage before, counted from 1).
OFF = {off}


def leave_passes_out():
    backend = make_backend(TARGET)
    compiler = sys.modules[type(backend).__module__]
    contexts, counts, stage_now = {{}}, {{}}, [""]

    class StandIn:
        def __init__(self, module):
            self.module = module

        def __getattr__(self, name):
            value = getattr(self.module, name)
            if isinstance(value, types.ModuleType):
                return StandIn(value)
            if name == "pass_manager":
                return lambda context: new_manager(value, context)
            if callable(value) and not isinstance(value, type):
                return through(name, value)
            return value

    def new_manager(kind, context):
        manager = kind(context)
        contexts[id(manager)] = kind, context
        return manager

    def through(name, builder):
        return lambda *arguments, **others: add(name, builder, arguments, others)

    def add(name, builder, arguments, others):
        if not arguments or id(arguments[0]) not in contexts or type(arguments[0]) is not contexts[id(arguments[0])][0]:
            return builder(*arguments, **others)
        kind, context = contexts[id(arguments[0])]
        alone = kind(context)
        result = builder(alone, *arguments[1:], **others)
        if alone.get_pipeline_str() == "any()":
            return result
        key = stage_now[0], name.removeprefix("add_")
        counts[key] = counts.get(key, 0) + 1
        if (*key, counts[key]) in OFF:
            return result
        return builder(*arguments, **others)

    def add_stages(self, stages, *others):
        real(self, stages, *others)
        for stage, make in list(stages.items()):
            def run(source, metadata, stage=stage, make=make):
                stage_now[0] = stage
                return make(source, metadata)

            stages[stage] = run

    for name, value in list(vars(compiler).items()):
        if isinstance(value, types.ModuleType) and value.__name__.startswith("triton._C"):
            setattr(compiler, name, StandIn(value))
        elif name == "instrument" and callable(value):
            setattr(compiler, name, through(name, value))
    real = type(backend).add_stages
    type(backend).add_stages = add_stages
"""

NO_LLVM_OPTIMISER = '    os.environ["DISABLE_LLVM_OPT"] = "1"\n'
NO_PTXAS_OPTIMISER = "    triton.knobs.nvidia.disable_ptxas_opt = True\n"

LAUNCH = '''

GRID = {grid}


def tensor(dtype, shape, strides, offset=0, storage_bytes=None, least=0, greatest=0, data=""):
    """A tensor as the launch was given one: with its data, or random floats, or integers of its range, or zeros."""
    dtype = getattr(torch, dtype)
    needed = offset + sum((size - 1) * abs(stride) for size, stride in zip(shape, strides)) + 1
    count = max(needed, (storage_bytes or 0) // dtype.itemsize)
    if dtype.is_floating_point:
        storage = torch.empty(count, dtype=torch.float16 if dtype.itemsize == 1 else dtype, device="cuda")
        storage = storage.normal_().to(dtype)
    elif dtype == torch.bool or not (least or greatest):
        # Where the values were not recorded, an index out of range would read beyond a tensor.
        storage = torch.full((count,), bool(greatest), dtype=dtype, device="cuda")
    else:
        storage = torch.randint(least, greatest + 1, (count,), device="cuda").to(dtype)
    made = storage.as_strided(shape, strides, offset)
    if data:
        made.copy_(unpacked(data, dtype).reshape(shape))
    return made


def unpacked(data, dtype):
    return torch.frombuffer(bytearray(zlib.decompress(base64.b85decode(data))), dtype=dtype)


def descriptor(base, shape, strides, block_shape):
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(base, list(shape), list(strides), block_shape)


def arguments():
    return [
{arguments}
    ]


def launch(compiled):
    global torch
    try:
        import torch
    except ImportError:
        return "not launched: torch is not installed"
    if not torch.cuda.is_available():
        return "not launched: there is no GPU here"
    if (present := triton.runtime.driver.active.get_current_target()) != TARGET:
        return f"not launched: the GPU here is {{present.backend}}:{{present.arch}}"
    torch.manual_seed(0)
    given = arguments()
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device="cuda"))
    compiled[GRID](*given)
    torch.cuda.synchronize()
    checked = what_differs(given)
    milliseconds = triton.testing.do_bench(lambda: compiled[GRID](*given))
    return f"launched on a grid of {{GRID}}: {{1000 * milliseconds:.2f}} us{{checked}}"
'''

CHECK = '''

# What each tensor held after the recorded launch: argument, its place among the arguments, data.
EXPECTED = [
{rows}
]


def what_differs(given):
    """How what the first launch left differs from what the recorded one left, which had the same inputs."""
    said = []
    for name, places, data in EXPECTED:
        left = given
        for place in places:
            left = left[place]
        left = left.detach().cpu().contiguous().reshape(-1)
        wanted = unpacked(data, left.dtype)
        differs = (left.view(torch.uint8) != wanted.view(torch.uint8)).reshape(left.numel(), -1).any(1)
        if differs.any():
            error = (left[differs].to(torch.float64) - wanted[differs].to(torch.float64)).abs().max().item()
            said.append(f"{{name}}: {{int(differs.sum())}} of {{left.numel()}} elements differ, by up to {{error:.3g}}")
    return "".join("\\n" + line for line in said) or "\\nthe result is the recorded one, bit for bit"
'''

NO_CHECK = """

def what_differs(given):
    return ""
"""

NO_LAUNCH = """

def launch(compiled):
    return {why}
"""

MAIN = """

def main():
    parser = argparse.ArgumentParser(description={title})
    parser.add_argument("--keep", metavar="FOLDER", help="keep what every stage made in this folder")
    parser.add_argument("--no-launch", action="store_true", help="only compile")
    chosen = parser.parse_args()
    if not triton.__version__.startswith({version}):
        print({release}, triton.__version__, file=sys.stderr)
    folder = chosen.keep or tempfile.mkdtemp()
    try:
        os.environ["TRITON_CACHE_DIR"] = os.path.abspath(folder)
        os.makedirs(folder, exist_ok=True)
{switches}        compiled = compile_kernel()
        print({compiled} + (f", into {{folder}}" if chosen.keep else ""))
        if not chosen.no_launch:
            print(launch(compiled))
    finally:
        if not chosen.keep:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
"""
