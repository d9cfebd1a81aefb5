#pragma once

// Before a loop of constant length over an array of vectors: unrolled completely, the array lives in
// registers.
#if defined(__clang__)
#define QGEN_UNROLL _Pragma("clang loop unroll(full)")
#else
#define QGEN_UNROLL _Pragma("GCC unroll 64")
#endif
