// Opens a region whose functions may use the instruction sets in QGEN_REGION_TARGET, a string that the
// including file defines. No include guard: a file may open several regions one after the other.
//
// Regions instead of per-file compiler flags: with flags, every inline function of every header would be
// compiled for that instruction set too, and the linker might keep that copy for code that runs on any
// processor. So nothing but our own kernels may be defined inside: include all headers first.
#ifndef QGEN_REGION_TARGET
#error "define QGEN_REGION_TARGET first"
#endif

#define QGEN_PRAGMA_OF(text) _Pragma(#text)
#define QGEN_PRAGMA(text) QGEN_PRAGMA_OF(text)
#if defined(__clang__)
QGEN_PRAGMA(clang attribute push(__attribute__((target(QGEN_REGION_TARGET))), apply_to = function))
#else
QGEN_PRAGMA(GCC push_options)
QGEN_PRAGMA(GCC target(QGEN_REGION_TARGET))
#endif
