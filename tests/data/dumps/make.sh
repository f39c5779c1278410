#!/bin/sh
# Makes the logs of one version of Triton: make.sh VERSION PYTHON, where PYTHON has that version.
set -eu
version=$1 python=$2
cd "$(dirname "$0")"
work=$(mktemp -d)
export TRITON_DEFAULT_FP_FUSION=1

# Paths of the machine that made them are left out of the logs.
keep() {
    sed -e "s#$(pwd)/##g" -e "s#$(pwd)#.#g" -e 's#"[^"]*/site-packages/#"#g' -e 's#/tmp/tmp[a-z0-9_]*\.ttgir#broken.ttgir#g' "$1" |
        xz -9e -c >"$2"
}

for target in cuda:90 hip:gfx942; do
    name=$version.$(echo $target | tr -d :)
    TRITON_CACHE_DIR=$work/$name MLIR_ENABLE_DUMP=1 MLIR_DUMP_PATH=$work/log \
        "$python" kernels.py $target add add:BLOCK=128 calls dot:num_warps=4 dot:num_warps=2 2>"$work/printed"
    # Triton 3.6 and 3.7 print the pipeliner's own dumps on standard error all the same.
    keep "$work/log" "$name.mlir.xz"
    TRITON_CACHE_DIR=$work/$name.llvm MLIR_ENABLE_DUMP=1 LLVM_IR_ENABLE_DUMP=1 \
        "$python" kernels.py $target add:BLOCK=32 dot >"$work/log" 2>&1
    keep "$work/log" "$name.stderr.xz"
done
MLIR_ENABLE_DUMP=1 "$python" failing.py >"$work/log" 2>&1
keep "$work/log" "$version.failing.xz"
rm -r "$work"
